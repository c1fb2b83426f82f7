/** All simulated worlds, for `npm run simulate`. */
import type { SettingKind } from "../play.ts";
import { leaseWorld } from "./lease.ts";
import { redisWorld } from "./redis.ts";
import { redlockWorld } from "./redlock.ts";
import { zookeeperWorld } from "./zookeeper.ts";

export const WORLDS: readonly SettingKind[] = [leaseWorld(), redisWorld(), redlockWorld(), zookeeperWorld()];
