/** The verbs of the queue on MySQL and MariaDB: each is one packet, and one transaction or one statement, with one commit. */
import type { Queue, Traits } from "../../engine/engine.ts";
import type { Answer, Ask, LeaseStore, Renewal, StoreEvents } from "../../engine/lease-store.ts";
import { EngineUnavailableError } from "../../engine/errors.ts";
import type { Result } from "./client.ts";
import type { Desk } from "./desk.ts";
import { Office, type OfficeOptions } from "./office.ts";
import { packet, preparedPacket, type Statement, type Values } from "./packet.ts";
import { canRing, Requests, withBell, type Request } from "./requests.ts";
import { affectedRows, askValues, behind, bytes, entryOf, insertId, micros, rowSets, text, tokenOf } from "./rows.ts";
import { Sweeper } from "./sweeper.ts";

const NAMES_PAGE = 500;
/** Renewals of one transaction: it holds their rows until it commits. */
const RENEWED_AT_A_TIME = 200;

export interface StoreOptions extends OfficeOptions {
  readonly rememberMs: number;
}

export class MysqlStore implements LeaseStore {
  readonly #office: Office;
  readonly #sweeper: Sweeper;
  #opened: Requests | undefined;

  constructor(options: StoreOptions) {
    this.#office = new Office(options);
    this.#sweeper = new Sweeper({
      clock: options.clock,
      rememberMs: options.rememberMs,
      run: (statements, values) => this.#office.run(this.#office.clerk, () => packet(statements, values), "sweeping"),
      visit: (name) => this.#visit(this.#office.desk(), [], { name }).then(() => undefined),
    });
  }

  /** What the server allows is known once the store is open. */
  get traits(): Traits {
    const survey = this.#office.survey;
    return {
      engine: "mysql",
      fair: true,
      shared: true,
      limits: true,
      steal: true,
      minHold: true,
      lease: "lease",
      bells: survey?.bells === false ? "recheck" : "push",
      scope: "network",
      survivesRestart: survey?.keeps !== false,
      survivesFailover: false,
      survivesClockJump: false,
    };
  }

  async open(events: StoreEvents): Promise<void> {
    this.#opened = new Requests(events, await this.#office.open(events));
    this.#sweeper.start();
  }

  async request(ask: Ask): Promise<Answer> {
    const known = this.#requests.get(ask.owner);
    const request = known ?? this.#requests.add(ask, this.#office.desk());
    const values = askValues(ask);
    if (known === undefined && !ask.steal && !this.#requests.isContended(ask.name)) {
      const token = await this.#take(request, ask.name, values);
      if (token > 0n) return { state: "held", token, ttlMs: ask.ttlMs };
    }
    return await this.#queue(request, ask, values);
  }

  /** The uncontended way in: one statement. 0: not taken. */
  async #take(request: Request, name: string, values: Values): Promise<bigint> {
    const results = await this.#office.run(
      request.desk,
      (bells) => withBell(request, bells, (bell) => preparedPacket("take", { ...values, bell })),
      "asking for a lock",
      bytes(name),
    );
    return insertId(results.at(-1));
  }

  async #queue(request: Request, ask: Ask, values: Values): Promise<Answer> {
    request.inRow = true;
    const statements: Statement[] = ["begin-new", "clear", "unfold"];
    if (ask.steal) statements.push("steal");
    else if (!ask.wait) statements.push("admit");
    statements.push("join", "grant", "touch", "close", "answer", "commit", "tell");
    const results = await this.#office.run(
      request.desk,
      (bells) => withBell(request, bells, (bell) => packet(statements, { ...values, bell })),
      "asking for a lock",
    );
    const sets = rowSets(results);
    if (ask.steal) this.#requests.check(sets.shift() ?? []);
    const [[mine] = [], granted = []] = sets;
    this.#requests.spread(granted, ask.owner);
    if (mine !== undefined) return this.#requests.answer(ask.owner, mine, ask);
    this.#requests.forget(ask.owner);
    return { state: "busy" };
  }

  async renew(renewals: readonly Renewal[]): Promise<readonly Answer[]> {
    const answers = new Map<string, Answer>();
    for (const alike of Map.groupBy(renewals, (each) => `${each.ttlMs} ${each.pendingTtlMs}`).values()) {
      for (let from = 0; from < alike.length; from += RENEWED_AT_A_TIME) {
        await this.#renewAlike(alike.slice(from, from + RENEWED_AT_A_TIME), answers);
      }
    }
    return renewals.map((each) => answers.get(each.owner) ?? { state: "gone", reason: "expired" });
  }

  /** Renews requests that all have the same TTLs. */
  async #renewAlike(alike: readonly Renewal[], answers: Map<string, Answer>): Promise<void> {
    const [first] = alike;
    if (first === undefined) return;
    const values = {
      names: [...new Set(alike.map((each) => each.name))].map(bytes),
      owners: alike.map((each) => bytes(each.owner)),
      ttl_us: micros(first.ttlMs),
      pending_us: micros(first.pendingTtlMs),
    };
    const statements: Statement[] = ["renew", "inside", "answer", "commit"];
    const results = await this.#office.run(this.#office.clerk, () => packet(statements, values), "renewing locks");
    const [inside = [], rows = []] = rowSets(results);
    for (const row of inside) {
      const token = tokenOf(row);
      if (token !== null) answers.set(text(row["owner"]), { state: "held", token, ttlMs: first.ttlMs });
    }
    for (const row of rows) answers.set(text(row["owner"]), this.#requests.answer(text(row["owner"]), row, first));
    for (const each of alike) {
      const answer = answers.get(each.owner);
      // A lease ahead is over: whoever sees that clears it away.
      if (answer?.state === "pending" && (answer.recheckMs ?? 0) <= 0)
        answers.set(each.owner, await this.#settle(each));
    }
    await this.#explain(
      alike.map((each) => each.owner).filter((owner) => !answers.has(owner)),
      answers,
    );
  }

  /** A whole transaction for one pending request: clears away what is over, grants, renews. */
  async #settle(renewal: Renewal): Promise<Answer> {
    const { name, owner } = renewal;
    const results = await this.#visit(this.#office.clerk, ["touch", "answer"], {
      name: bytes(name),
      owner: bytes(owner),
      owners: [bytes(owner)],
      ttl_us: micros(renewal.ttlMs),
      pending_us: micros(renewal.pendingTtlMs),
      bell: this.#requests.get(owner)?.bell ?? null,
    });
    const [[mine] = [], granted = []] = rowSets(results);
    this.#requests.spread(granted, owner);
    if (mine !== undefined) return this.#requests.answer(owner, mine, renewal);
    this.#requests.letGo(owner);
    return { state: "gone", reason: "expired" };
  }

  /** Why requests are gone. */
  async #explain(owners: readonly string[], answers: Map<string, Answer>): Promise<void> {
    if (owners.length === 0) return;
    const values = { owners: owners.map(bytes) };
    const results = await this.#office.run(this.#office.clerk, () => packet(["endings"], values), "renewing locks");
    const [rows = []] = rowSets(results);
    const reasons = new Map(rows.map((row) => [text(row["owner"]), text(row["reason"])]));
    for (const owner of owners) {
      const reason = reasons.get(owner);
      answers.set(owner, { state: "gone", reason: reason === "stolen" || reason === "evicted" ? reason : "expired" });
      this.#requests.letGo(owner);
    }
  }

  async release(name: string, owner: string): Promise<void> {
    await this.#leave(name, owner, true);
  }

  async withdraw(name: string, owner: string): Promise<void> {
    await this.#leave(name, owner, false);
  }

  /** `keep`: a minimum hold counts. */
  async #leave(name: string, owner: string, keep: boolean): Promise<void> {
    const request = this.#requests.get(owner);
    const desk = request?.desk ?? this.#office.desk();
    const values = { name: bytes(name), owner: bytes(owner), keep: keep ? 1 : 0 };
    if (request?.inRow !== true) {
      const results = await this.#office.run(
        desk,
        () => preparedPacket("put-down", values),
        "releasing a lock",
        values.name,
      );
      if (affectedRows(results[0]) > 0) return this.#requests.forget(owner);
    }
    if (keep && request?.exclusive === true && !request.minHold && (await this.#pass(request, name, owner))) return;
    const statements: Statement[] = ["begin", "clear", "depart", "grant", "close"];
    if (keep && request?.minHold !== false) statements.splice(2, 0, "disown");
    const results = await this.#office.run(
      desk,
      (bells) => {
        const ring: Statement[] = canRing(request, bells) ? ["ring"] : [];
        return packet([...statements, ...ring, "commit", "tell"], { ...values, bell: request?.bell ?? null });
      },
      "releasing a lock",
    );
    const [granted = [], [queue] = []] = rowSets(results);
    this.#requests.spread(granted);
    const othersRemain = queue?.["remain"] !== 0;
    this.#requests.left(name, othersRemain);
    if (othersRemain) this.#requests.letGo(owner);
    else this.#requests.forget(owner);
  }

  /** The short way out of a queue. False: the queue needs the whole transaction. */
  async #pass(request: Request, name: string, owner: string): Promise<boolean> {
    const values = { name: bytes(name), owner: bytes(owner), bell: request.bell };
    const results = await this.#office.run(
      request.desk,
      (bells) => {
        const ring: Statement[] = canRing(request, bells) ? ["ring-passed"] : [];
        return packet(["pass", ...ring, "close-empty", "commit", "tell-passed"], values);
      },
      "releasing a lock",
    );
    const granted = affectedRows(results[3]) > 0;
    const emptied = affectedRows(results.at(-3)) > 0;
    if (!granted && !emptied) return false;
    this.#requests.spread(rowSets(results).flat());
    this.#requests.left(name, granted);
    if (granted) this.#requests.letGo(owner);
    else this.#requests.forget(owner);
    return true;
  }

  async inspect(name: string): Promise<Queue> {
    const values = { name: bytes(name) };
    const results = await this.#office.run(this.#office.desk(), () => packet(["inspect"], values), "reading a queue");
    return rowSets(results).flat().map(entryOf);
  }

  async *names(prefix: string): AsyncIterable<string> {
    const until = behind(prefix);
    for (let from = bytes(prefix); ;) {
      const values = { from, until, page: NAMES_PAGE };
      const results = await this.#office.run(this.#office.desk(), () => packet(["names"], values), "listing names");
      const names = rowSets(results)
        .flat()
        .map((row) => text(row["name"]));
      yield* names;
      if (names.length < NAMES_PAGE) return;
      from = bytes(`${names.at(-1)}\0`);
    }
  }

  async evict(name: string, token: bigint): Promise<boolean> {
    const statements: Statement[] = ["begin", "clear", "evict", "grant", "close", "commit", "tell", "evicted"];
    const values = { name: bytes(name), token };
    const results = await this.#office.run(this.#office.desk(), () => packet(statements, values), "evicting a holder");
    const [victims = [], granted = [], , [count] = []] = rowSets(results);
    this.#requests.spread(granted);
    this.#requests.check(victims);
    return Number(count?.["evicted"]) > 0;
  }

  async close(): Promise<void> {
    this.#sweeper.stop();
    this.#office.close();
  }

  /** A transaction on the queue of a name: clears away what is over, grants who is next, and does `more`. */
  #visit(desk: Desk, more: readonly Statement[], values: Values): Promise<readonly Result[]> {
    const statements: Statement[] = ["begin", "clear", "grant", ...more, "close", "commit", "tell"];
    return this.#office.run(desk, () => packet(statements, values), "looking after a queue");
  }

  get #requests(): Requests {
    if (this.#opened === undefined) throw new EngineUnavailableError("the mysql engine is not open");
    return this.#opened;
  }
}
