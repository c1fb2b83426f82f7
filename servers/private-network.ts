/**
 * A network of several machines inside this one: a Linux network namespace for each host, all on one bridge, and links
 * between hosts that can be cut. The program must itself run in a namespace made by `unshare` (see `PRIVATE_NETWORK`): the
 * addresses exist nowhere else, and the kernel removes everything with the last process, however that ends.
 */
import { execFile } from "node:child_process";
import { promisify } from "node:util";

const run = promisify(execFile);

/** What comes before the command of a program that makes a network. Needs root. */
export const PRIVATE_NETWORK: readonly string[] = ["unshare", "--net", "--mount", "--"];

export interface Host {
  /** Reached from this program and from the other hosts. */
  readonly address: string;
  /** What comes before a command that is to run there. */
  readonly enter: readonly string[];
  /** Drops every packet between this host and `others`, both ways, from now on. This program still reaches all. */
  cutFrom(others: readonly Host[]): Promise<void>;
}

const SUBNET = "10.77.0";
const BRIDGE = "bridge0";

/** Rejects where namespaces cannot be made; the error says what was tried. */
export async function startNetwork(size: number): Promise<Host[]> {
  const { stdout } = await run("ip", ["-json", "address"]);
  if (stdout.includes('"local":'))
    throw new Error(`not in a namespace of its own: run it with ${PRIVATE_NETWORK.join(" ")}`);
  // Names of namespaces are files; here they are seen by this program and its children alone.
  await run("mount", ["-t", "tmpfs", "tmpfs", "/run"]);
  await ip("link set lo up");
  await ip(`link add ${BRIDGE} type bridge`);
  await ip(`address add ${SUBNET}.254/24 dev ${BRIDGE}`);
  await ip(`link set ${BRIDGE} up`);
  const hosts: Host[] = [];
  for (let number = 1; number <= size; number++) hosts.push(await startHost(number));
  return hosts;
}

async function startHost(number: number): Promise<Host> {
  const name = `host${number}`;
  const address = `${SUBNET}.${number}`;
  await ip(`netns add ${name}`);
  await ip(`link add ${name} type veth peer name eth0 netns ${name}`);
  await ip(`link set ${name} master ${BRIDGE} up`);
  await ip(`-n ${name} link set lo up`);
  await ip(`-n ${name} address add ${address}/24 dev eth0`);
  await ip(`-n ${name} link set eth0 up`);
  const enter = ["ip", "netns", "exec", name];
  return {
    address,
    enter,
    async cutFrom(others) {
      const list = `{ ${others.map((other) => other.address).join(", ")} }`;
      const rules = [
        "add table ip cut",
        "add chain ip cut in { type filter hook input priority 0; }",
        "add chain ip cut out { type filter hook output priority 0; }",
        `add rule ip cut in ip saddr ${list} drop`,
        `add rule ip cut out ip daddr ${list} drop`,
      ];
      await run("ip", [...enter.slice(1), "nft", rules.join("\n")]);
    },
  };
}

async function ip(args: string): Promise<void> {
  await run("ip", args.split(" "));
}
