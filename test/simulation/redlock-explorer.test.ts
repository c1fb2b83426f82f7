/**
 * Every interleaving of small cases of redlock: with the rules as they are nothing breaks, with a planted mistake it does. Larger
 * cases: `node scripts/explore-redlock.ts`.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { explore, type Model } from "./redlock/explorer.ts";
import { LeaseModel } from "./redlock/lease-model.ts";
import { TokenModel } from "./redlock/token-model.ts";

function holds(model: Model, atLeast: number): void {
  const { states, complete, violation, trace } = explore(model);
  assert.equal(violation, undefined, trace.join("\n"));
  assert.ok(complete, `${states} states and no end`);
  // A model in which next to nothing can happen proves next to nothing.
  assert.ok(states >= atLeast, `only ${states} states`);
}

function breaks(model: Model, how: RegExp): void {
  const { states, violation, trace } = explore(model);
  assert.match(violation ?? `nothing in ${states} states`, how);
  assert.ok(trace.length > 5);
}

test("tokens: messages that are late, lost or carried out twice", () => {
  holds(new TokenModel({ nodes: 3, ballots: 2, repeats: 1 }), 100_000);
});

test("tokens: a holder sets its lock again on nodes that have lost it", () => {
  holds(new TokenModel({ nodes: 3, ballots: 2, joins: 2 }), 100_000);
});

test("tokens: any proposals", () => {
  for (const proposals of [
    [1, 3],
    [3, 1],
    [3, 3],
  ]) {
    holds(new TokenModel({ nodes: 3, ballots: 2, proposals }), 10_000);
  }
});

test("tokens: a node is restarted with its memory", () => {
  holds(new TokenModel({ nodes: 3, ballots: 2, crashes: 1, forgetful: false }), 100_000);
});

test("tokens: a node is restarted without its memory", () => {
  holds(new TokenModel({ nodes: 3, ballots: 2, crashes: 1 }), 500_000);
});

test("planted: tokens are not raised", () => {
  breaks(new TokenModel({ nodes: 3, ballots: 3, raise: "none" }), /granted twice/);
});

test("planted: tokens are raised without asking whether the counter is below", () => {
  breaks(new TokenModel({ nodes: 3, ballots: 2, raise: "careless", repeats: 1 }), /granted twice/);
});

test("planted: a node votes at once after an empty restart", () => {
  breaks(new TokenModel({ nodes: 3, ballots: 2, crashes: 1, readmission: "at-once" }), /granted/);
  breaks(new LeaseModel({ nodes: 3, ballots: 2, crashes: 1, quarantine: 0 }), /two holders/);
});

test("planted: a node is taken back while ballots that it voted in are going on", () => {
  breaks(new TokenModel({ nodes: 3, ballots: 2, crashes: 1, readmission: "early" }), /granted/);
});

test("planted: a node is taken back with the counters of one other", () => {
  breaks(new TokenModel({ nodes: 3, ballots: 2, crashes: 1, readmission: "one" }), /granted/);
});

test("leases: a node is restarted and forgets", () => {
  holds(new LeaseModel({ nodes: 3, ballots: 2, crashes: 1 }), 100_000);
});

test("leases: a renewal sets the lock again on nodes that have lost it", () => {
  holds(new LeaseModel({ nodes: 3, ballots: 2, renewals: 1, lease: 2 }), 200_000);
});

test("planted: the quarantine is shorter than the lease", () => {
  breaks(new LeaseModel({ nodes: 3, ballots: 2, crashes: 1, quarantine: 1 }), /two holders/);
});

test("planted: the clock of a node jumps, and nobody notices", () => {
  breaks(new LeaseModel({ nodes: 3, ballots: 2, jumps: 1 }), /two holders/);
});

test("planted: nodes that may have set the lock again vouch for the time before", () => {
  breaks(new LeaseModel({ nodes: 3, ballots: 2, renewals: 2, lease: 2, vouching: "heard" }), /held in between/);
});
