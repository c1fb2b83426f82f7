/** Which monotonic clock this process reads, and in which PID namespace its process ids are meant. */
import { execFileSync } from "node:child_process";
import { readFileSync, readlinkSync } from "node:fs";
import { systemClock, type Clock } from "../../engine/clock.ts";

/** Everything that makes monotonic times of two processes comparable: same id, same clock. */
export function bootId(clock: Clock): string {
  if (clock === systemClock) return (systemBootId ??= readBootId());
  // Another clock is a machine of its own, shared by those who hold the same object.
  const known = ownClocks.get(clock) ?? randomId(clock);
  ownClocks.set(clock, known);
  return known;
}

let systemBootId: string | undefined;
const ownClocks = new WeakMap<Clock, string>();

function readBootId(): string {
  try {
    const id = readPlatformBootId();
    if (id !== "") return id;
  } catch {
    // No such file, program or permission.
  }
  // Nobody shares this id, so requests of other processes are watched for a TTL instead of read: slower, never wrong.
  return randomId(systemClock);
}

function readPlatformBootId(): string {
  switch (process.platform) {
    case "linux": {
      const boot = readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
      // A time namespace shifts the monotonic clock of its processes.
      return boot === "" ? "" : `${boot} ${namespaceId("time")}`;
    }
    case "darwin":
      return sysctl("kern.bootsessionuuid");
    case "freebsd":
      return sysctl("kern.boot_id");
    case "win32": {
      const key = "HKLM\\SYSTEM\\CurrentControlSet\\Control\\Session Manager\\Memory Management\\PrefetchParameters";
      const output = execFileSync("reg", ["query", key, "/v", "BootId"], { encoding: "utf8", windowsHide: true });
      return /0x[0-9a-f]+/i.exec(output)?.[0] ?? "";
    }
    default:
      return "";
  }
}

function sysctl(name: string): string {
  return execFileSync("/sbin/sysctl", ["-n", name], { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] }).trim();
}

function namespaceId(kind: "time" | "pid"): string {
  try {
    return readlinkSync(`/proc/self/ns/${kind}`);
  } catch {
    return "";
  }
}

/**
 * The PID namespace of this process; empty where there is none of them, or when it cannot be told. Where /proc belongs
 * to another namespace it shows other processes under our numbers, so nothing can be told there either.
 */
export function pidSpace(): string {
  if (process.platform !== "linux") return process.platform;
  try {
    return readlinkSync("/proc/self") === String(process.pid) ? namespaceId("pid") : "";
  } catch {
    return "";
  }
}

const ID_BYTES = 12;

export function randomId(clock: Clock): string {
  return Buffer.from(clock.randomBytes(ID_BYTES)).toString("base64url");
}
