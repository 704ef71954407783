import { expect, test } from 'vitest';
import { events } from './events.ts';
import type { Method } from './method.ts';
import { actionsByPlatform } from './methods/platform-actions.ts';
import { methodsByName } from './registry.ts';
import surface from './testdata/spec-surface.json' with { type: 'json' };

/** Additional methods that json-rpc.md does not name. */
const beyondSpec = new Set([
  'memory.review',
  'memory.lifecycle',
  'session.fork',
  'session.feedback',
  'session.update',
  'session.suggest_title',
  'session.stop',
  'session.steer',
  'session.tags',
  'prompts.list',
  'prompts.save',
  'prompts.delete',
  'agent.getPrompt',
  'graph.retry',
  'cron.backfill',
  'run.executions',
  'obs.trace.replay',
  'eval.run',
  'eval.get',
  'eval.list',
  'eval.stop',
  'eval.cases',
  'rpc.discover',
  'daemon.logs',
  'usage.report',
  'workspace.readBytes',
  'knowledge.list',
  'knowledge.search',
  'knowledge.read',
  'knowledge.refresh',
  'tools.list',
  'cron.preview',
  'webhooks.list',
  'webhooks.deliveries',
  'webhooks.replay',
  'webhooks.test',
  'channels.messages',
  'channels.retry',
  'channels.pairings',
  'channels.pair',
  'channels.unpair',
  'delivery.list',
  'delivery.resend',
  'delivery.settle',
  'inbox.list',
  'inbox.markRead',
  'run.list',
  'obs.trace.get',
  'background.list',
  'background.screen',
  'background.stop',
  'background.type',
  'browser.input',
  'browser.recordings.delete',
  'browser.recordings.get',
  'browser.recordings.list',
  'browser.recordings.picture',
  'browser.take_over',
  'browser.view',
  'graph.answer',
  'mcp.authorize',
  'mcp.deauthorize',
  'providers.list',
  'providers.remove',
  'providers.refresh',
  'providers.retry',
  'providers.set',
  'providers.test',
  'env.remove',
]);
/** Additional events that the specification does not name. */
const eventsBeyondSpec = [
  'message:thinking',
  'session:updated',
  'tool:started',
  'tool:output',
  'tool:finished',
  'inbox:message',
  'webhook:delivery',
  'channel:message',
  'channel:delivery',
  'notification:enqueued',
  'notification:suppressed',
  'notification:delivered',
  'session:cross_send',
  'session:ping_pong_turn',
  'graph:driver_lifecycle',
  'autonomy:revoked',
  'autonomy:killed',
  'autonomy:denial_breaker',
  'capability:audited',
  'daemon:log',
];
/** Steps whose events must exist by now. */
const finishedSteps = new Set(['1', '3', '4', '5', '6']);

const scopes = new Map<string, string | null>(Object.entries(surface.methods));
const registered = Object.entries<Method>(methodsByName);

/** "one <platform>.action per chat platform" (json-rpc.md §4). */
const actionMethods = new Set(Object.keys(actionsByPlatform).map((platform) => `${platform}.action`));

test.each(registered)('%s is part of the specified surface', (name) => {
  expect(scopes.has(name) || actionMethods.has(name) || beyondSpec.has(name)).toBe(true);
});

test('actions of platforms are for administrators', () => {
  expect(registered.filter(([name]) => actionMethods.has(name)).map(([, { scope }]) => scope)).toEqual([...actionMethods].map(() => 'admin'));
});

test.each(registered)('%s has the scope of the specification', (name, one) => {
  const specified = scopes.get(name) ?? null;
  expect(specified === null ? [one.scope] : specified.split('+')).toContain(one.scope);
});

test('methods that must not be registered are not', () => {
  expect(registered.map(([name]) => name).filter((name) => surface.neverRegistered.includes(name))).toEqual([]);
});

test('every event of the finished steps is declared', () => {
  const due = Object.entries({ ...surface.events, ...surface.trajectoryEvents }).filter(([, step]) => finishedSteps.has(step));
  expect(due.length).toBeGreaterThan(0);
  expect(due.map(([kind]) => kind).filter((kind) => !(kind in events))).toEqual([]);
});

test('no event is declared that the specification does not know', () => {
  const known = { ...surface.events, ...surface.trajectoryEvents };
  expect(Object.keys(events).filter((kind) => !(kind in known))).toEqual(eventsBeyondSpec);
});
