import type { Clock } from '../../../../kernel/clock.ts';
import { headOf } from '../../../../kernel/cut-text.ts';
import type { EventBus } from '../../../../kernel/event-bus.ts';
import type { LiveNode } from '../nodes/live-node.ts';
import type { Phase } from '../nodes/run-node.ts';
import type { GraphRow } from '../rows.ts';

const progressCharacters = 200;
const errorCharacters = 500;

/** Announces what happens to the nodes of a graph. */
export class NodeEvents {
  readonly #bus: EventBus;
  readonly #clock: Clock;
  readonly #row: Pick<GraphRow, 'id' | 'agentId' | 'principalId'>;

  constructor({ bus, clock }: { readonly bus: EventBus; readonly clock: Clock }, row: Pick<GraphRow, 'id' | 'agentId' | 'principalId'>) {
    this.#bus = bus;
    this.#clock = clock;
    this.#row = row;
  }

  updated(node: LiveNode): void {
    const { state, runId, progress, startedAtMs, endedAtMs, error, spec } = node;
    this.#bus.emit(
      'graph:node_updated',
      {
        ...this.#about,
        nodeId: spec.id,
        status: state,
        ...(runId !== null && { runId }),
        ...(progress !== undefined && { progress: headOf(progress, progressCharacters) }),
        ...(node.answered !== undefined && { waitsForAnswer: true }),
        ...(startedAtMs !== null && endedAtMs !== null && { durationMs: Math.max(0, endedAtMs - startedAtMs) }),
        ...(error !== null && { error: headOf(error, errorCharacters) }),
      },
      this.#row.principalId,
    );
  }

  phase(node: LiveNode, phase: Phase): void {
    const typeId = node.spec.work?.type;
    if (typeId !== undefined)
      this.#bus.emit('graph:driver_lifecycle', { ...this.#about, nodeId: node.spec.id, typeId, phase }, this.#row.principalId);
  }

  get #about() {
    return { graphId: this.#row.id, agentId: this.#row.agentId, timestamp: this.#clock.now() };
  }
}
