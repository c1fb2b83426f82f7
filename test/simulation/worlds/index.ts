/** All simulated worlds, for `npm run simulate`. */
import { type SettingKind } from "../play.ts";
import { leaseWorld } from "./lease.ts";

export const WORLDS: readonly SettingKind[] = [leaseWorld()];
