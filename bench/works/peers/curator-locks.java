// Curator's InterProcessMutex as a peer. Arguments: servers, path, clients. Reads `run MS` lines and answers each with the number of
// locks taken and released by all clients together; also `acquire` and `release`, by the first client, answered with `ok`.

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.retry.ExponentialBackoffRetry;

final class CuratorLocks {
  private static final AtomicInteger INSIDE = new AtomicInteger();

  public static void main(String[] arguments) throws Exception {
    List<InterProcessMutex> mutexes = new ArrayList<>();
    for (int client = 0; client < Integer.parseInt(arguments[2]); client++) {
      CuratorFramework framework =
          CuratorFrameworkFactory.newClient(arguments[0], 30_000, 10_000, new ExponentialBackoffRetry(100, 5));
      framework.start();
      framework.blockUntilConnected();
      mutexes.add(new InterProcessMutex(framework, arguments[1]));
    }
    // Daemons: the program ends with its input.
    ExecutorService threads = Executors.newFixedThreadPool(mutexes.size(), task -> {
      Thread thread = new Thread(task);
      thread.setDaemon(true);
      return thread;
    });
    BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
    System.out.println("ready");
    for (String line = input.readLine(); line != null; line = input.readLine()) {
      if (line.equals("acquire")) {
        mutexes.get(0).acquire();
        System.out.println("ok");
      } else if (line.equals("release")) {
        mutexes.get(0).release();
        System.out.println("ok");
      } else {
        System.out.println(run(threads, mutexes, Long.parseLong(line.substring("run ".length()))));
      }
    }
    System.exit(0);
  }

  private static long run(ExecutorService threads, List<InterProcessMutex> mutexes, long milliseconds)
      throws InterruptedException, ExecutionException {
    long until = System.nanoTime() + milliseconds * 1_000_000;
    List<Future<Long>> counts = new ArrayList<>();
    for (InterProcessMutex mutex : mutexes) counts.add(threads.submit(() -> loop(mutex, until)));
    long sum = 0;
    for (Future<Long> count : counts) sum += count.get();
    return sum;
  }

  private static long loop(InterProcessMutex mutex, long until) throws Exception {
    long count = 0;
    while (System.nanoTime() < until) {
      mutex.acquire();
      if (INSIDE.incrementAndGet() != 1) throw new IllegalStateException("two are inside at once");
      INSIDE.decrementAndGet();
      mutex.release();
      count++;
    }
    return count;
  }
}
