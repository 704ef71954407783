import { createDiagnosis, type DiagnosisDeps } from '../features/operations/diagnosis/diagnosis.ts';
import { createExecutions } from '../features/operations/executions/executions.ts';
import { createReports, type ReportsDeps } from '../features/operations/observability/reports/reports.ts';
import { createAuditQuery } from '../features/operations/observability/audit-query.ts';
import { createSystem, type SystemDeps } from '../features/operations/system/system.ts';
import type { Traces } from '../features/operations/traces/traces.ts';
import { readRootTasks } from '../transactions/waiting-roots.ts';
import { recordAudit } from '../kernel/audit.ts';
import { freeSpaceOf } from '../kernel/disk-space.ts';
import type { Assembly } from './assembly.ts';

export interface SystemWiring
  extends
    Pick<SystemDeps, 'address' | 'connections' | 'turns' | 'nodes' | 'isReplaced' | 'sections' | 'retention' | 'jail'>,
    Pick<ReportsDeps, 'agents' | 'usage' | 'events'> {
  readonly traces: Pick<Traces, 'flush' | 'running'>;
  readonly channels: DiagnosisDeps['channels'];
  readonly tracedBy: DiagnosisDeps['tracedBy'];
}

/** Wires the daemon's information about itself: its state, its audit, and the documents of its interface. */
export function wireSystem({ building, options, db, bus, clock, core, live }: Assembly, deps: SystemWiring) {
  const redactText = options.redactor.redact;
  const about = () => {
    const baseUrl = deps.address();
    return { version: options.version, ...(baseUrl !== null && { baseUrl }) };
  };
  const openrpc = () => import('@gatehouse/contract/openrpc').then(({ openRpcDocument }) => openRpcDocument(about()));
  const openapi = () => import('@gatehouse/contract/openapi').then(({ openApiDocument }) => openApiDocument(about()));
  const asyncapi = () => import('@gatehouse/contract/asyncapi').then(({ asyncApiDocument }) => asyncApiDocument(about()));
  const stopLines = options.logger.recent.listen((read) => {
    const line = bus.wants('daemon:log') ? read() : undefined;
    if (line !== undefined) bus.emit('daemon:log', line);
  });
  building.defer(stopLines);
  const system = createSystem({
    ...deps,
    clock,
    log: options.log.module('system'),
    logger: options.logger,
    version: options.version,
    configFiles: options.configFiles,
    configuration: options.configuration,
    supervised: options.supervised,
    openRpc: openrpc,
    storage: () => db.status(),
    freeBytes: () =>
      freeSpaceOf(options.home.dataDir).then(
        ({ bytes }) => bytes,
        () => undefined,
      ),
    checkConfig: options.checkConfig,
    restart: options.restart,
    audit: (call, what) => recordAudit({ db, bus, clock }, call, { classification: 'mutate', ...what }),
  });
  const reports = building.use(
    createReports({
      ...core('reports'),
      agents: deps.agents,
      usage: deps.usage,
      events: deps.events,
      flushTraces: deps.traces.flush,
      zone: live(({ scheduler }) => scheduler.cron.defaultTimezone),
      retentionDays: live(({ observability }) => observability.persistence.retentionDays),
      redactText,
    }),
  );
  return {
    methods: {
      ...system.methods,
      ...createAuditQuery({ db, redactText }),
      ...createDiagnosis({ db, clock, traces: deps.traces, channels: deps.channels, tracedBy: deps.tracedBy }).methods,
      ...reports.methods,
      ...createExecutions({ db, readRootTasks }),
    },
    documents: { openapi, openrpc, asyncapi },
  };
}
