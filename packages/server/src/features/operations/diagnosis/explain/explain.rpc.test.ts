import { rootCauses, type RootCauseCode, unusedRootCauses } from '@gatehouse/contract';
import { sql, startTestServer, type TestServer } from '@gatehouse/testkit';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { canary, failedCall, makeRecord, refOf, type RecordSpec, storeRecords } from '../testing/records.ts';
import { stagedFailures } from '../testing/staged-failures.ts';
import { rules } from './rules/rules.ts';

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer();
  await server.client.call('memory.store', { content: 'Cats sleep a lot' });
});
afterAll(() => server[Symbol.asyncDispose]());

const explainText = async (params: Parameters<typeof server.client.call<'obs.explain'>>[1]) => JSON.stringify(await server.client.call('obs.explain', params));

let sessions = 10_000;
/** Stores records of a new session, all of one trace unless they name their own. */
async function stage(...specs: readonly RecordSpec[]) {
  sessions += 1;
  const session = { conversationRef: refOf(sessions), sessionKey: `user${sessions}:web` };
  const records = specs.map((spec) => makeRecord({ ...session, ...spec }));
  await storeRecords(server, ...records);
  const last = records.at(-1);
  if (last === undefined) throw new Error('stage at least one record');
  return { ...session, records, last };
}

test.each(stagedFailures)('$title: $code', async ({ code, records }) => {
  const { sessionKey, conversationRef } = await stage(...records);
  const text = await explainText({ sessionKey });
  const report = JSON.parse(text);
  expect(report.likelyRootCause?.code ?? null).toBe(code);
  expect(report).toMatchObject({ sessionKey, conversationRef, schemaVersion: 1 });
  expect(Buffer.byteLength(text)).toBeLessThanOrEqual(6 * 1024);
  expect(await explainText({ sessionKey })).toBe(text);
  const full = await explainText({ sessionKey, depth: 'full' });
  for (const one of [text, full]) expect(one).not.toMatch(/CANARY|Oma/u);
  if (code !== null) expect(report.suggestedNextSteps).not.toEqual([]);
});

test('every code has a rule, or a reason why it has none, and is staged here or below', () => {
  const stagedElsewhere: readonly RootCauseCode[] = ['session_not_found', 'sub_agent_failed', 'graph_node_failed', 'approval_expired', 'learned_skill_failing'];
  const ruled = new Set<string>(rules.map(({ code }) => code));
  const staged = new Set<string>([...stagedFailures.flatMap(({ code }) => (code === null ? [] : [code])), ...stagedElsewhere]);
  const all = Object.keys(rootCauses);
  expect(all.filter((code) => code !== 'session_not_found' && !ruled.has(code))).toEqual(Object.keys(unusedRootCauses));
  expect(all.filter((code) => !staged.has(code))).toEqual(Object.keys(unusedRootCauses));
  const order = rules.map(({ code }) => all.indexOf(code));
  expect(order).toEqual(order.toSorted((a, b) => a - b));
});
