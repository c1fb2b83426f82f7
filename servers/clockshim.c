/*
 * Moves the wall clock of one process, while it runs. Loaded with LD_PRELOAD.
 *
 * CLOCKSHIM_FILE names a file of eight bytes: a native 64-bit count of nanoseconds that is added to CLOCK_REALTIME.
 * The file is mapped, so whoever writes it moves the clock at once. Monotonic clocks stay true.
 *
 * Nothing here may allocate or call the C library's own clock: the allocator of redis-server reads the clock while it
 * sets itself up, which is how general clock fakers deadlock it.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define SECOND 1000000000LL

static volatile int64_t *shared_offset;
static int opened;

static int64_t offset(void) {
  if (!opened) {
    const char *path = getenv("CLOCKSHIM_FILE");
    opened = 1;
    if (path) {
      int file = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
      if (file >= 0) {
        void *map = mmap(0, sizeof(int64_t), PROT_READ, MAP_SHARED, file, 0);
        syscall(SYS_close, file);
        if (map != MAP_FAILED) shared_offset = map;
      }
    }
  }
  return shared_offset ? *shared_offset : 0;
}

static struct timespec moved(struct timespec time, int64_t by) {
  int64_t nanoseconds = (int64_t)time.tv_sec * SECOND + time.tv_nsec + by;
  if (nanoseconds < 0) nanoseconds = 0;
  struct timespec result = {nanoseconds / SECOND, nanoseconds % SECOND};
  return result;
}

int clock_gettime(clockid_t clock, struct timespec *time) {
  int failed = (int)syscall(SYS_clock_gettime, clock, time);
  if (!failed && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) *time = moved(*time, offset());
  return failed;
}

int gettimeofday(struct timeval *time, void *zone) {
  struct timespec now;
  (void)zone;
  clock_gettime(CLOCK_REALTIME, &now);
  if (time) {
    time->tv_sec = now.tv_sec;
    time->tv_usec = now.tv_nsec / 1000;
  }
  return 0;
}

time_t time(time_t *result) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (result) *result = now.tv_sec;
  return now.tv_sec;
}

/* The kernel's clock is not moved, so an absolute instant that the process computed has to be moved back for it. */
int pthread_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *mutex, const struct timespec *until) {
  static int (*original)(pthread_cond_t *, pthread_mutex_t *, const struct timespec *);
  struct timespec now, real;
  if (!original) original = dlvsym(RTLD_NEXT, "pthread_cond_timedwait", "GLIBC_2.3.2");
  if (!original) original = dlsym(RTLD_NEXT, "pthread_cond_timedwait");
  clock_gettime(CLOCK_REALTIME, &now);
  /* Far below the wall clock: a condition variable on the monotonic clock, which is not moved. */
  if (until->tv_sec < now.tv_sec / 2) return original(condition, mutex, until);
  real = moved(*until, -offset());
  return original(condition, mutex, &real);
}
