import { createStepClock } from '@gatehouse/testkit';
import { expect, it } from 'vitest';
import { silentLog } from '../../../../kernel/log.ts';
import type { TracedWork } from '../../../../kernel/work-trace.ts';
import { toWorkRecord } from '../../traces/work-record.ts';
import { type SentSpan, startCollector } from './testing/collector.ts';
import { openTraces } from './traces.ts';

const traceId = '4bf92f3577b34da6a3ce929d0e0e4736';
const works: readonly TracedWork[] = [
  { id: 'tn_1', kind: 'turn', traceId, agentId: 'ada', outcome: 'ok', endReason: 'stop' },
  {
    id: 'tr_1',
    kind: 'delivery',
    agentId: 'ada',
    parentId: 'tn_1',
    channelType: 'irc',
    channelId: 'net',
    outcome: 'failed',
    endReason: 'rejected',
    error: { kind: 'forbidden', text: 'canary' },
    refs: { deliveryId: 'ob_1' },
  },
  { id: 'tr_2', kind: 'delivery', origin: 'webhook', channelType: 'webhook', channelId: 'build', outcome: 'skipped', endReason: 'filtered' },
  {
    id: 'tr_3',
    kind: 'media',
    traceId,
    agentId: 'ada',
    conversationRef: 'cv_1',
    outcome: 'ok',
    model: 'openai/tts-1',
    facts: { operation: 'speech', provider: 'openai', keyless: false },
  },
  {
    id: 'tr_4',
    kind: 'background',
    traceId,
    parentId: 'tn_1',
    outcome: 'cancelled',
    endReason: 'evicted',
    refs: { terminalId: 'term_1' },
    facts: { tool: 'terminal', event: 'evicted' },
  },
  { id: 'tr_5', kind: 'background', traceId, parentId: 'tn_1', outcome: 'ok', facts: { tool: 'exec' } },
  {
    id: 'tr_6',
    kind: 'embedding',
    traceId,
    parentId: 'tn_1',
    outcome: 'ok',
    steps: [
      { id: 0, kind: 'model', name: 'vectors/small', at: 0, outcome: 'ok' },
      { id: 1, parent: 0, kind: 'attempt', name: 'vectors/small', at: 0, outcome: 'ok' },
    ],
  },
];

async function spansOf(sampleRatio: number): Promise<SentSpan[]> {
  await using collector = await startCollector();
  {
    const clock = createStepClock();
    const config = { endpoint: collector.endpoint, headers: {}, sampleRatio };
    await using traces = openTraces(config, { version: '1.0.0', clock, log: silentLog });
    const records = works.map((work) => toWorkRecord(work, clock));
    // A record that is exported again.
    for (const record of [...records, ...records]) traces.write(record);
  }
  expect(collector.requests.map(({ body }) => body).join('')).not.toContain('canary');
  return collector.spans();
}

it('deliveries, speech, terminal sessions and embeddings have spans without content, whose ids stay when they are exported again', async () => {
  const spans = await spansOf(1);
  const [turn, sent, received, speech, terminal, embedding, ...again] = spans;
  expect(spans.map(({ name, kind }) => [name, kind]).slice(0, 6)).toEqual([
    ['invoke_agent ada', 1],
    ['send irc', 4],
    ['process webhook', 5],
    ['speech tts-1', 3],
    ['terminal', 1],
    ['embeddings small', 3],
  ]);
  expect(again.map(({ traceId: trace, spanId }) => [trace, spanId])).toEqual(spans.slice(0, 6).map(({ traceId: trace, spanId }) => [trace, spanId]));
  expect(new Set(spans.map(({ spanId }) => spanId)).size).toBe(6);
  expect(sent).toMatchObject({
    status: { code: 2 },
    attributes: {
      'messaging.system': 'irc',
      'messaging.operation.type': 'send',
      'messaging.destination.name': 'net',
      'gatehouse.delivery.id': 'ob_1',
      'gatehouse.turn.id': 'tn_1',
      'gen_ai.agent.id': 'ada',
      'error.type': 'forbidden',
    },
  });
  expect(received?.status).toEqual({ code: 0 });
  expect(speech).toMatchObject({
    traceId,
    attributes: {
      'gen_ai.operation.name': 'speech',
      'gen_ai.provider.name': 'openai',
      'gen_ai.request.model': 'tts-1',
      'gen_ai.conversation.id': 'cv_1',
    },
  });
  expect(terminal).toMatchObject({ traceId, parentSpanId: turn?.spanId, attributes: { 'gatehouse.terminal.id': 'term_1' } });
  expect(embedding).toMatchObject({ traceId, parentSpanId: turn?.spanId, attributes: { 'gen_ai.operation.name': 'embeddings' } });
});

it('work that is written later follows the decision about its trace', async () => {
  expect(await spansOf(0)).toEqual([]);
});
