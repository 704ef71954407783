import type { EventKind } from '@gatehouse/contract';
import type { Clock } from '../../../kernel/clock.ts';
import type { Db } from '../../../kernel/db/db.ts';
import type { EventBus } from '../../../kernel/event-bus.ts';
import { createMetricRegistry } from '../../../kernel/metrics.ts';
import type { Attempt, Models } from '../../../llm/models.ts';
import { costOf, totalCost } from '../../../llm/price.ts';
import type { Tool } from '../../../runtime/tool.ts';
import type { RunTurn } from '../../../runtime/turn.ts';
import type { TransportMeter } from './api.ts';
import { createInstruments } from './instruments.ts';
import { addComponents, addProcess, type MetricSources } from './sampled-metrics.ts';

export interface MetricsDeps {
  readonly version: string;
  readonly clock: Clock;
  readonly bus: EventBus;
}

/** Rare events about the daemon's health, counted by kind. Kinds of every turn are not among them, because a listener makes the bus build them. */
const countedKinds: readonly EventKind[] = [
  'model:fallback_attempt',
  'model:fallback_exhausted',
  'model:auth_cooldown',
  'provider:degraded',
  'provider:recovered',
  'security:injection_detected',
  'security:injection_rate_exceeded',
  'security:warn',
  'system:error',
];

/** The numbers of `/metrics` (Prometheus). */
export function createMetrics({ version, clock, bus }: MetricsDeps) {
  const registry = createMetricRegistry();
  const counted = createInstruments(registry);
  const stopListening = bus.listen(countedKinds, ({ kind }) => counted.announced(kind).add());
  addProcess(registry, version);

  const transports: TransportMeter = {
    request(route, family, method, status, ms) {
      counted.requests(route, method, status === 0 ? 'left' : `${Math.floor(status / 100)}xx`).add();
      counted.requestTime(family).observe(ms / 1000);
    },
    call(method, outcome, ms) {
      counted.calls(method, outcome).add();
      counted.callTime().observe(ms / 1000);
    },
    failed: (at, code) => counted.errors(at, code).add(),
    wrongSecret: () => counted.wrongSecrets.add(),
    rateLimited: () => counted.limited.add(),
  };

  function book(agentId: string, { model, usage, latencyMs, outcome }: Attempt): void {
    const { provider, modelId } = model;
    counted.modelCalls(provider, modelId, outcome).add();
    counted.modelTime(provider, modelId).observe(latencyMs / 1000);
    counted.tokens(provider, modelId, agentId, 'input').add(usage.input);
    counted.tokens(provider, modelId, agentId, 'output').add(usage.output);
    if (usage.cacheRead > 0) counted.tokens(provider, modelId, agentId, 'cache_read').add(usage.cacheRead);
    if (usage.cacheWrite > 0) counted.tokens(provider, modelId, agentId, 'cache_write').add(usage.cacheWrite);
    const price = costOf(usage, model.price);
    if (price !== null) counted.cost(provider, modelId, agentId).add(totalCost(price) / 1e9);
  }

  return {
    transports,
    /** Counts an attempt that does not come from `generate`. */
    countAttempt: book,
    render: registry.render,
    /** Adds values of components that are created later. */
    attach: (sources: MetricSources): void => addComponents(registry, sources),
    generate:
      (generate: Models['generate']): Models['generate'] =>
      (call, sink) =>
        generate(
          {
            ...call,
            onAttempt(attempt) {
              book(call.agentId, attempt);
              call.onAttempt(attempt);
            },
          },
          sink,
        ),
    runTurn:
      (runTurn: RunTurn): RunTurn =>
      async (input, sink) => {
        const begun = clock.monotonic();
        const result = await runTurn(input, sink);
        counted.turns(input.agentId, input.origin, result.finishReason).add();
        counted.turnTime(input.agentId).observe((clock.monotonic() - begun) / 1000);
        return result;
      },
    tool(tool: Tool): Tool {
      const outcomes = { ok: counted.toolCalls(tool.name, 'ok'), error: counted.toolCalls(tool.name, 'error') };
      const run: Tool['run'] = async (args, context) => {
        let outcome: keyof typeof outcomes = 'error';
        try {
          const result = await tool.run(args, context);
          if (result.isError !== true) outcome = 'ok';
          return result;
        } finally {
          outcomes[outcome].add();
        }
      };
      // Not spread: that would build the schema of its arguments.
      return Object.defineProperties(Object.create(null), { ...Object.getOwnPropertyDescriptors(tool), run: { value: run, enumerable: true } });
    },
    db(db: Db): Db {
      return {
        write(operation, input) {
          counted.writes(operation.name).add();
          return db.write(operation, input);
        },
        telemetry: (operation, input) => db.telemetry(operation, input),
        read: (operation, input) => db.read(operation, input),
        search: (operation, input) => db.search(operation, input),
        backup: (targetPath, onProgress) => db.backup(targetPath, onProgress),
        status: () => db.status(),
        [Symbol.asyncDispose]: () => db[Symbol.asyncDispose](),
      };
    },
    [Symbol.dispose]: stopListening,
  };
}
