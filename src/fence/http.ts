/**
 * A guard in front of an HTTP service: holders send their token in a header, the service refuses those from the past. For
 * fetch-style handlers and for node:http. Tokens of one key are taken one request after the other, so a request that was let in
 * has ended before a later holder's first one begins.
 */
import type { IncomingMessage, RequestListener, ServerResponse } from "node:http";
import { ConfigError, StaleTokenError } from "../engine/errors.ts";
import { checkEpoch, type FenceOptions, type Fencing, isStale, type Mark, markOf } from "./mark.ts";

export const FENCING_HEADER = "fencing-token";

/** The header to send with every request that a lock protects: `fetch(url, { headers: fencingHeaders(lock) })`. */
export function fencingHeaders(fencing: Fencing, { epoch = 0 }: FenceOptions = {}): { "fencing-token": string } {
  const mark = markOf(fencing, checkEpoch(epoch));
  return { [FENCING_HEADER]: mark.epoch === 0 ? String(mark.token) : `${mark.token};epoch=${mark.epoch}` };
}

export interface HttpFenceOptions {
  /** What a request is about: each key is guarded by itself. Default: the path of its URL. */
  key?: ((request: { readonly method: string; readonly url: string }) => string) | undefined;
  /**
   * Keeps the latest token of each key elsewhere, and rejects with `StaleTokenError` when this one is older. Needed where
   * several processes serve one key: then let the handler write through a fence of the database, and enter it here.
   * Default: the memory of this process.
   */
  enter?: ((key: string, fencing: Mark) => void | Promise<void>) | undefined;
  /** So many keys are remembered in memory, and requests for others are refused with 503. Default 100,000. */
  mostKeys?: number | undefined;
}

export interface HttpFence {
  /** Guards a fetch-style handler. `fencing` is undefined for a safe request (GET, HEAD, OPTIONS) without a token. */
  fetch(
    handler: (request: Request, fencing: Mark | undefined) => Response | Promise<Response>,
  ): (request: Request) => Promise<Response>;
  /** Guards a listener of node:http. It has to return a promise that settles when its writes are done. */
  node(
    listener: (request: IncomingMessage, response: ServerResponse, fencing: Mark | undefined) => Promise<void>,
  ): RequestListener;
}

const SAFE_METHODS = new Set(["GET", "HEAD", "OPTIONS"]);
const DEFAULT_MOST_KEYS = 100_000;

interface Guarded {
  seen: Mark;
  /** Settles when the requests so far have ended. */
  last: Promise<void>;
}

/** A refusal as it goes out. */
class Refusal extends Error {
  readonly status: number;
  readonly code: string;

  constructor(status: number, code: string, message: string) {
    super(message);
    this.status = status;
    this.code = code;
  }

  get body(): string {
    return JSON.stringify({ status: this.status, title: this.message, code: this.code });
  }
}

const PROBLEM = { "content-type": "application/problem+json" };

class HeaderFence implements HttpFence {
  readonly #key: (request: { readonly method: string; readonly url: string }) => string;
  readonly #enterElsewhere: HttpFenceOptions["enter"];
  readonly #mostKeys: number;
  readonly #guarded = new Map<string, Guarded>();

  constructor({ key = pathOf, enter, mostKeys = DEFAULT_MOST_KEYS }: HttpFenceOptions) {
    if (!(mostKeys >= 1)) throw new ConfigError("mostKeys must be a number from 1");
    this.#key = key;
    this.#enterElsewhere = enter;
    this.#mostKeys = mostKeys;
  }

  fetch(
    handler: (request: Request, fencing: Mark | undefined) => Response | Promise<Response>,
  ): (request: Request) => Promise<Response> {
    return async (request) => {
      try {
        const header = request.headers.get(FENCING_HEADER);
        return await this.#guard(request, header, async (fencing) => await handler(request, fencing));
      } catch (error) {
        const refusal = refusalFor(error);
        return new Response(refusal.body, { status: refusal.status, headers: PROBLEM });
      }
    };
  }

  node(
    listener: (request: IncomingMessage, response: ServerResponse, fencing: Mark | undefined) => Promise<void>,
  ): RequestListener {
    return (request, response) => {
      const { method = "GET", url = "/" } = request;
      const header = request.headers[FENCING_HEADER];
      const value = Array.isArray(header) ? header.join(", ") : header;
      this.#guard({ method, url }, value, (fencing) => listener(request, response, fencing)).catch((error: unknown) => {
        if (!(error instanceof Refusal || error instanceof StaleTokenError)) {
          // The listener's own failure: nothing that we could answer better than by breaking off.
          response.destroy(error instanceof Error ? error : undefined);
          return;
        }
        const refusal = refusalFor(error);
        response.writeHead(refusal.status, PROBLEM).end(refusal.body);
      });
    };
  }

  async #guard<T>(
    request: { readonly method: string; readonly url: string },
    header: string | null | undefined,
    handle: (fencing: Mark | undefined) => Promise<T>,
  ): Promise<T> {
    if (header === null || header === undefined) {
      if (SAFE_METHODS.has(request.method)) return await handle(undefined);
      throw new Refusal(428, "TOKEN_REQUIRED", `send the fencing token of your lock in the header ${FENCING_HEADER}`);
    }
    const mark = parse(header);
    const key = this.#key(request);
    if (this.#enterElsewhere === undefined) return await this.#inTurn(key, mark, handle);
    await this.#enterElsewhere(key, mark);
    return await handle(mark);
  }

  /** Waits for the requests before, checks, and only then lets the handler run. */
  async #inTurn<T>(key: string, mark: Mark, handle: (fencing: Mark) => Promise<T>): Promise<T> {
    const guarded = this.#guarded.get(key) ?? this.#remember(key, mark);
    const ended = Promise.withResolvers<void>();
    const before = guarded.last;
    guarded.last = ended.promise;
    try {
      await before;
      if (isStale(mark, guarded.seen)) throw new StaleTokenError(key, mark.token, guarded.seen.token);
      guarded.seen = mark;
      return await handle(mark);
    } finally {
      ended.resolve();
    }
  }

  #remember(key: string, seen: Mark): Guarded {
    if (this.#guarded.size >= this.#mostKeys) {
      // Forgetting one would let its stale holders in.
      throw new Refusal(503, "TOO_MANY_KEYS", `this guard remembers ${this.#mostKeys} keys and can take no more`);
    }
    const guarded = { seen, last: Promise.resolve() };
    this.#guarded.set(key, guarded);
    return guarded;
  }
}

function pathOf({ url }: { readonly url: string }): string {
  return new URL(url, "http://localhost").pathname;
}

function parse(header: string): Mark {
  const [, token, epoch = "0"] = /^\s*(\d{1,19})\s*(?:;\s*epoch=(\d{1,10})\s*)?$/.exec(header) ?? [];
  try {
    if (token !== undefined) return markOf(BigInt(token), checkEpoch(Number(epoch)));
  } catch {
    // Too large: as wrong as anything else.
  }
  throw new Refusal(400, "TOKEN_MALFORMED", `the header ${FENCING_HEADER} is one number, or "TOKEN;epoch=N"`);
}

function refusalFor(error: unknown): Refusal {
  if (error instanceof Refusal) return error;
  if (error instanceof StaleTokenError) return new Refusal(412, "STALE_TOKEN", error.message);
  throw error;
}

/**
 * Refuses with 412 (STALE_TOKEN), 428 (TOKEN_REQUIRED), 400 (TOKEN_MALFORMED) or 503 (TOO_MANY_KEYS), as
 * `application/problem+json` with that `code`.
 */
export function httpFence(options: HttpFenceOptions = {}): HttpFence {
  return new HeaderFence(options);
}
