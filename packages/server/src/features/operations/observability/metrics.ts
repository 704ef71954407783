import { performance } from 'node:perf_hooks';
import type { EventKind } from '@gatehouse/contract';
import type { Clock } from '../../../kernel/clock.ts';
import type { Db, DbStatus } from '../../../kernel/db/db.ts';
import type { EventBus } from '../../../kernel/event-bus.ts';
import { createMetricRegistry } from '../../../kernel/metrics.ts';
import type { Attempt, Models } from '../../../llm/models.ts';
import { costOf, totalCost } from '../../../llm/price.ts';
import type { Tool } from '../../../runtime/tool.ts';
import type { RunTurn } from '../../../runtime/turn.ts';
import type { TransportMeter } from './api.ts';

export interface MetricsDeps {
  readonly version: string;
  readonly clock: Clock;
  readonly bus: EventBus;
}

/** Values that are read at a scrape. */
export interface MetricSources {
  readonly turns: () => { readonly running: number; readonly queued: number };
  readonly connections: () => { readonly http: number; readonly websocket: number };
  readonly eventStreams: () => number;
  readonly storage: () => Promise<DbStatus>;
  /** Longest delay of the event loop in the last full second, in milliseconds. */
  readonly loopDelayMs: () => number;
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
const requestSeconds = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];
const turnSeconds = [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600];

/** The numbers of `/metrics` (Prometheus). Labels are names of the configuration and of closed lists: never a token, a conversation or a caller. */
export function createMetrics({ version, clock, bus }: MetricsDeps) {
  const registry = createMetricRegistry();
  const requests = registry.counter('gatehouse_http_requests_total', 'HTTP requests by declared route and class of status.', [
    'route',
    'method',
    'status',
  ]);
  const requestTime = registry.histogram(
    'gatehouse_http_request_duration_seconds',
    'From the first byte of a request to the last of its answer; streams included.',
    ['family'],
    requestSeconds,
  );
  const calls = registry.counter('gatehouse_rpc_calls_total', 'JSON-RPC calls by method and outcome (ok or the code of the error).', [
    'method',
    'outcome',
  ]);
  const callTime = registry.histogram('gatehouse_rpc_call_duration_seconds', 'JSON-RPC calls, over both transports.', [], requestSeconds);
  const errors = registry.counter('gatehouse_errors_total', 'Requests and handshakes that ended with an error, by its code.', ['door', 'code']);
  const wrongSecrets = registry.counter('gatehouse_auth_failures_total', 'Secrets presented that belong to no token.', [])();
  const limited = registry.counter('gatehouse_rate_limited_total', 'Requests and calls refused by the rate limiter.', [])();
  const turns = registry.counter('gatehouse_turns_total', 'Turns of agents by how they ended.', ['agent', 'origin', 'outcome']);
  const turnTime = registry.histogram('gatehouse_turn_duration_seconds', 'Turns of agents, without waiting in a queue.', ['agent'], turnSeconds);
  const modelCalls = registry.counter('gatehouse_model_calls_total', 'Calls of models, retries and fallbacks each counted.', [
    'provider',
    'model',
    'outcome',
  ]);
  const modelTime = registry.histogram('gatehouse_model_call_duration_seconds', 'Calls of models.', ['provider', 'model'], turnSeconds);
  const tokens = registry.counter('gatehouse_model_tokens_total', 'Tokens of model calls; input includes cached tokens.', [
    'provider',
    'model',
    'agent',
    'type',
  ]);
  const cost = registry.counter('gatehouse_model_cost_dollars_total', 'Cost of model calls whose price is known, in US dollars.', [
    'provider',
    'model',
    'agent',
  ]);
  const toolCalls = registry.counter('gatehouse_tool_calls_total', 'Tools that ran.', ['tool', 'outcome']);
  const writes = registry.counter('gatehouse_storage_writes_total', 'Operations sent to the database.', ['operation']);
  const announced = registry.counter('gatehouse_events_total', 'Events about the health of the daemon.', ['kind']);
  const stopListening = bus.listen(countedKinds, ({ kind }) => announced(kind).add());
  addProcess(registry, version);

  const transports: TransportMeter = {
    request(route, family, method, status, ms) {
      requests(route, method, status === 0 ? 'left' : `${Math.floor(status / 100)}xx`).add();
      requestTime(family).observe(ms / 1000);
    },
    call(method, outcome, ms) {
      calls(method, outcome).add();
      callTime().observe(ms / 1000);
    },
    failed: (at, code) => errors(at, code).add(),
    wrongSecret: () => wrongSecrets.add(),
    rateLimited: () => limited.add(),
  };

  function book(agentId: string, { model, usage, latencyMs, outcome }: Attempt): void {
    const { provider, modelId } = model;
    modelCalls(provider, modelId, outcome).add();
    modelTime(provider, modelId).observe(latencyMs / 1000);
    tokens(provider, modelId, agentId, 'input').add(usage.input);
    tokens(provider, modelId, agentId, 'output').add(usage.output);
    if (usage.cacheRead > 0) tokens(provider, modelId, agentId, 'cache_read').add(usage.cacheRead);
    if (usage.cacheWrite > 0) tokens(provider, modelId, agentId, 'cache_write').add(usage.cacheWrite);
    const price = costOf(usage, model.price);
    if (price !== null) cost(provider, modelId, agentId).add(totalCost(price) / 1e9);
  }

  return {
    transports,
    /** Counts an attempt that does not come from `generate`. */
    countAttempt: book,
    render: registry.render,
    /** Adds values of components that are created later. */
    attach({ turns: counts, connections, eventStreams, storage, loopDelayMs }: MetricSources): void {
      registry.gauge('gatehouse_turns', 'Running and queued turns.', ['state'], () => {
        const { running, queued } = counts();
        return [
          [['running'], running],
          [['queued'], queued],
        ];
      });
      registry.gauge('gatehouse_connections', 'Open sockets.', ['transport'], () => {
        const { http, websocket } = connections();
        return [
          [['http'], http],
          [['websocket'], websocket],
        ];
      });
      registry.gauge('gatehouse_event_streams', 'Answers that are event streams and still open.', [], () => [[[], eventStreams()]]);
      registry.gauge('gatehouse_storage_writable', '1 while the database accepts writes, 0 after a full disk or an I/O error.', [], async () => [
        [[], (await storage().catch(() => undefined))?.state === 'ok' ? 1 : 0],
      ]);
      registry.gauge('gatehouse_storage_bytes', 'Size of the database and of its write-ahead log.', ['file'], async () => {
        const status = await storage().catch(() => undefined);
        return status === undefined
          ? []
          : [
              [['database'], status.bytes],
              [['wal'], status.walBytes],
            ];
      });
      registry.gauge('gatehouse_event_loop_delay_seconds', 'Longest delay of the event loop in the last full second.', [], () => [
        [[], loopDelayMs() / 1000],
      ]);
    },
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
        turns(input.agentId, input.origin, result.finishReason).add();
        turnTime(input.agentId).observe((clock.monotonic() - begun) / 1000);
        return result;
      },
    tool(tool: Tool): Tool {
      const outcomes = { ok: toolCalls(tool.name, 'ok'), error: toolCalls(tool.name, 'error') };
      return {
        ...tool,
        async run(args, context) {
          let outcome: keyof typeof outcomes = 'error';
          try {
            const result = await tool.run(args, context);
            if (result.isError !== true) outcome = 'ok';
            return result;
          } finally {
            outcomes[outcome].add();
          }
        },
      };
    },
    db(db: Db): Db {
      return {
        write(operation, input) {
          writes(operation.name).add();
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

/** Names that Prometheus dashboards expect of every program, and of Node. */
function addProcess(registry: ReturnType<typeof createMetricRegistry>, version: string): void {
  registry.gauge('gatehouse_build_info', 'Always 1; the version is the label.', ['version'], () => [[[version], 1]]);
  registry.total('process_cpu_seconds_total', 'Processor time of the process.', [], () => {
    const { user, system } = process.cpuUsage();
    return [[[], (user + system) / 1e6]];
  });
  registry.gauge('process_resident_memory_bytes', 'Memory of the process.', [], () => [[[], process.memoryUsage.rss()]]);
  registry.gauge('process_start_time_seconds', 'Start of the process, in seconds since the epoch.', [], () => [[[], performance.timeOrigin / 1000]]);
  registry.gauge('nodejs_heap_size_used_bytes', 'Heap in use.', [], () => [[[], process.memoryUsage().heapUsed]]);
  registry.gauge('nodejs_heap_size_total_bytes', 'Heap.', [], () => [[[], process.memoryUsage().heapTotal]]);
  registry.gauge('nodejs_external_memory_bytes', 'Memory of the engine outside of the heap.', [], () => [[[], process.memoryUsage().external]]);
  registry.total('gatehouse_event_loop_seconds_total', 'Time that the event loop worked and waited.', ['state'], () => {
    const { active, idle } = performance.eventLoopUtilization();
    return [
      [['active'], active / 1000],
      [['idle'], idle / 1000],
    ];
  });
}
