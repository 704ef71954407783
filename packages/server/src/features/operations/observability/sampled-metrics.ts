import { performance } from 'node:perf_hooks';
import type { DbStatus } from '../../../kernel/db/db.ts';
import type { MetricRegistry } from '../../../kernel/metrics.ts';

/** Values that are read at a scrape. */
export interface MetricSources {
  readonly turns: () => { readonly running: number; readonly queued: number };
  readonly connections: () => { readonly http: number; readonly websocket: number };
  readonly eventStreams: () => number;
  readonly storage: () => Promise<DbStatus>;
  /** Longest delay of the event loop in the last full second, in milliseconds. */
  readonly loopDelayMs: () => number;
}

/** Adds values of components that are created later than the registry. */
export function addComponents(registry: MetricRegistry, { turns, connections, eventStreams, storage, loopDelayMs }: MetricSources): void {
  registry.gauge('gatehouse_turns', 'Running and queued turns.', ['state'], () => {
    const { running, queued } = turns();
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
}

/** Names that Prometheus dashboards expect of every program, and of Node. */
export function addProcess(registry: MetricRegistry, version: string): void {
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
