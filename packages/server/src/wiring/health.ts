import type { Health } from '@gatehouse/contract';
import type { Clock } from '../kernel/clock.ts';
import type { DbStatus } from '../kernel/db/db.ts';
import type { Models } from '../llm/models.ts';

export interface HealthDeps {
  readonly version: string;
  readonly clock: Clock;
  readonly models: Pick<Models, 'list' | 'states'>;
  readonly state: () => 'starting' | 'running' | 'draining';
  /** Fails when the storage cannot be used. */
  readonly storage: () => Promise<DbStatus>;
  /** Whether daemons share the database. */
  readonly isShared: boolean;
  /** Why this daemon may not work: its lease was not renewed, or another one has taken over. */
  readonly leaseFault: () => string | undefined;
  /** Why new work is refused. */
  readonly overload: () => string | undefined;
  /** What is in short supply on the disk, so that nothing new is stored. */
  readonly lacking: () => 'space' | 'inodes' | undefined;
  /** Another build of the program has been installed. */
  readonly isReplaced: () => boolean;
  /** The files of the program are gone. */
  readonly programFault: () => string | undefined;
  /** The clock may be wrong. */
  readonly isClockDoubted: () => boolean;
  /** True after repeated crashes: no agent takes turns. */
  readonly controlPlaneOnly: boolean;
}

/** Returns the worst of the states, in one word and without the name of a provider. */
function modelsCheck(models: HealthDeps['models']): Health['checks'][string] {
  if (models.list().every((model) => model.provider === 'offline')) return { status: 'degraded', detail: 'no model provider is connected' };
  const states = models.states().map(({ state }) => state);
  const worst = (['refused', 'unreachable', 'cooling'] as const).find((state) => states.includes(state));
  return worst === undefined ? { status: 'ok' } : { status: 'degraded', detail: worst };
}

function programCheck({ isReplaced, programFault }: HealthDeps): Health['checks'] {
  if (programFault() !== undefined) return { program: { status: 'degraded', detail: 'its files were removed: restart the daemon' } };
  return isReplaced() ? { program: { status: 'degraded', detail: 'another build is installed: restart the daemon' } } : {};
}

/** Creates the answer of `/health`. A daemon without a model provider is healthy: that is its state before setup. */
export function createHealth(deps: HealthDeps): () => Promise<Health> {
  const { clock } = deps;
  const startedAt = clock.monotonic();
  return async () => {
    const storage = await deps.storage().catch(() => undefined);
    const state = deps.state();
    const leaseFault = deps.leaseFault();
    const overload = deps.overload() !== undefined;
    const lacking = deps.lacking();
    const readOnly = storage?.state === 'read_only';
    const isTelemetryLost = storage?.telemetryState === 'read_only';
    const checks: Health['checks'] = {
      storage:
        storage === undefined
          ? { status: 'failed' }
          : readOnly
            ? { status: 'degraded', detail: storage.reason ?? 'read-only' }
            : lacking !== undefined
              ? { status: 'degraded', detail: lacking === 'inodes' ? 'the disk has nearly no inodes left' : 'the disk is nearly full' }
              : { status: 'ok' },
      ...(isTelemetryLost && {
        telemetry: { status: 'degraded', detail: 'events and traces are not stored: the disk of their file is full or failing' },
      }),
      models: modelsCheck(deps.models),
      load: overload ? { status: 'degraded', detail: 'new work is refused for a while' } : { status: 'ok' },
      ...programCheck(deps),
      ...(deps.isClockDoubted() && { clock: { status: 'degraded', detail: 'more than a week from where it should be: check it' } }),
      ...(deps.isShared && { lease: leaseFault === undefined ? { status: 'ok' } : { status: 'failed', detail: leaseFault } }),
      turns: deps.controlPlaneOnly ? { status: 'failed', detail: 'stopped after repeated crashes' } : { status: 'ok' },
    };
    const unwell =
      leaseFault !== undefined ||
      storage === undefined ||
      readOnly ||
      isTelemetryLost ||
      lacking !== undefined ||
      overload ||
      deps.controlPlaneOnly ||
      deps.programFault() !== undefined;
    return {
      status: state !== 'running' ? state : unwell ? 'degraded' : 'ok',
      ...(deps.isShared && { role: 'active' }),
      version: deps.version,
      uptimeMs: Math.round(clock.monotonic() - startedAt),
      checks,
    };
  };
}
