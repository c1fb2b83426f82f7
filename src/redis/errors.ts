/** What can go wrong with a command. None of these ever carries the arguments of a command or a secret. */

/** The server answered with an error: the command has had no effect. */
export class RedisReplyError extends Error {
  override readonly name = "RedisReplyError";
  /** The first word of the answer: `NOSCRIPT`, `READONLY`, `NOPERM`, `OOM`, `ERR` … */
  readonly code: string;

  constructor(message: string) {
    super(message);
    this.code = codeOf(message) ?? "ERR";
  }
}

/** No answer came: the command may or may not have been carried out, or may be carried out later. */
export class RedisOutcomeUnknownError extends Error {
  override readonly name = "RedisOutcomeUnknownError";
}

/** The URL or the client cannot be used; the message says why. Trying again does not help. */
export class RedisConfigError extends Error {
  override readonly name = "RedisConfigError";
}

/** An error reply starts with a code in capitals; the errors of the clients and of the system do not. */
function codeOf(message: string): string | undefined {
  return /^([A-Z][A-Z0-9]{2,})(?: |$)/.exec(message)?.[1];
}

/**
 * Any error of a client, as one of ours. The original is not kept as the cause: clients attach the command with its
 * arguments (a password, the owner of a lock) to their errors.
 */
export function translate(error: unknown, secrets: readonly string[]): Error {
  if (error instanceof RedisReplyError || error instanceof RedisOutcomeUnknownError) return error;
  if (error instanceof RedisConfigError) return error;
  const message = redact(messageOf(error), secrets);
  return codeOf(message) === undefined ? new RedisOutcomeUnknownError(message) : new RedisReplyError(message);
}

/** `text` without any of the secrets. */
export function redact(text: string, secrets: readonly string[]): string {
  let result = text;
  for (const secret of secrets) if (secret !== "") result = result.replaceAll(secret, "***");
  return result;
}

/** An AggregateError (every address refused) has no message of its own. */
function messageOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if (error.message === "" && error instanceof AggregateError) return error.errors.map(messageOf).join("; ");
  return error.message === "" ? error.name : error.message;
}
