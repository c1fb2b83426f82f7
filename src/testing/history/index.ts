/** Histories of locks: recorded by any number of processes, checked against the promises of the model. */
export { checkHistory, countByPromise, type HistoryOptions, type HistoryReport } from "./check.ts";
export type { HistoryEvent } from "./event.ts";
export {
  historyArray,
  historyFile,
  HistoryRecorder,
  type HistorySink,
  readHistory,
  type RecordedGrant,
  RecordedRequest,
  type RecordedWish,
} from "./recorder.ts";
export type { Operation } from "./operation.ts";
export type { Judged, Violation } from "./violation.ts";
