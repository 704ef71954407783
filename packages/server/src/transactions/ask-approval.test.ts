import { fixed } from '../kernel/config/live.ts';
import { createStepClock } from '@gatehouse/testkit';
import { afterEach, beforeEach, expect, test } from 'vitest';
import * as z from 'zod';
import { askApproval, withdrawApproval } from './ask-approval.ts';
import { createApprovals } from '../features/access/approvals/approvals.ts';
import { ApprovalsConfig } from '../features/access/approvals/config.ts';
import { listInbox } from '../features/unattended/inbox/store.ts';
import type { Db } from '../kernel/db/db.ts';
import { openInlineDb } from '../kernel/db/sqlite/inline.ts';
import { createEventBus } from '../kernel/event-bus.ts';
import { silentLog } from '../kernel/log.ts';
import { turnInput } from '../runtime/testing.ts';
import type { Tool } from '../runtime/tool.ts';
import { migrations, operations } from './registry.ts';

const change: Tool = {
  name: 'change',
  description: 'Changes.',
  args: z.looseObject({}),
  risk: 'write',
  effect: 'idempotent',
  timeoutMs: 1000,
  run: async () => ({ content: 'changed' }),
};
const ledger = { workId: 'wi_1', startedAtMs: 1, begin: async () => {}, end: async () => {}, pause: async () => {}, finish: async () => {} };

let db: Db;
let written: () => void = () => {};
beforeEach(async () => {
  db = await openInlineDb({ migrations, operations });
});
afterEach(() => db[Symbol.asyncDispose]());

/** Approvals over a database that calls `written` between the commit of a request and its response. */
async function start() {
  const announced: string[] = [];
  const bus = createEventBus((error) => {
    throw error;
  });
  const clock = createStepClock();
  const slow: Db = {
    ...db,
    read: db.read.bind(db),
    async write(op, input) {
      const answer = await db.write(op, input);
      if (op.name === askApproval.name) written();
      return answer;
    },
  };
  const approvals = await createApprovals({
    bootId: 'boot',
    db: slow,
    bus,
    clock,
    log: silentLog,
    config: fixed(ApprovalsConfig().parse({ mode: 'ask' })),
    hideSecrets: (text) => text,
    printKey: String,
    askApproval,
    withdrawApproval,
    announceMessage: ({ id }) => void announced.push(id),
    resume: () => {},
  });
  const controller = new AbortController();
  const turn = turnInput({ tools: [change], ledger, signal: controller.signal });
  const ask = () => approvals.gate({ tool: change, args: {}, turn, before: () => [], results: [], signal: controller.signal });
  const messages = async () => (await db.read(listInbox, { principalId: null, agentIds: null, unreadOnly: false, before: null, limit: 10 })).rows;
  return { approvals, controller, announced, ask, messages, turn };
}

test.each(['stopped', 'cleared'])('a request whose turn is %s while it is written leaves no message and nothing to decide', async (how) => {
  const { approvals, controller, announced, ask, messages, turn } = await start();
  using _ = approvals;
  written = () => (how === 'stopped' ? controller.abort() : void approvals.clearing(turn.conversationRef));
  expect(await ask()).toMatchObject({ allowed: false, message: expect.stringContaining('before anybody decided') as unknown });
  expect([await messages(), announced, approvals.left()]).toEqual([[], [], []]);
});

test('a turn that a stop of the daemon interrupts at that point asks again when it continues, and is not denied', async () => {
  const { approvals, controller, ask, messages } = await start();
  written = () => controller.abort();
  await ask();
  approvals[Symbol.dispose]();
  written = () => {};
  const next = await start();
  using _ = next.approvals;
  expect(await next.ask()).toMatchObject({ waits: { approvalId: expect.stringMatching(/^ap_/) as unknown } });
  expect([(await messages()).length, next.announced.length]).toEqual([1, 1]);
});
