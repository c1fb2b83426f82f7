/** Every engine of the suite, by the name that `--engine` takes. */
import type { Deployment } from "../deployment.ts";
import type { Dice } from "../dice.ts";
import { memoryDeployment } from "./memory.ts";
import { mysqlDeployment } from "./mysql.ts";
import { redisFailoverDeployment } from "./redis-failover.ts";
import { redisDeployment } from "./redis.ts";
import { redlockDeployment } from "./redlock.ts";
import { sqliteDeployment } from "./sqlite.ts";
import { zookeeperDeployment } from "./zookeeper.ts";

export const DEPLOYMENTS: Readonly<Record<string, (dice: Dice) => Promise<Deployment>>> = {
  memory: () => memoryDeployment(),
  sqlite: sqliteDeployment,
  redis: redisDeployment,
  "redis-failover": () => redisFailoverDeployment(1),
  "redis-failover-unconfirmed": () => redisFailoverDeployment(0),
  mysql: mysqlDeployment,
  redlock: redlockDeployment,
  zookeeper: zookeeperDeployment,
};
