import { AppError } from '../../../../kernel/app-error.ts';
import type { Clock } from '../../../../kernel/clock.ts';
import type { EventBus } from '../../../../kernel/event-bus.ts';
import type { ModelWork } from '../../../access/budgets/api.ts';

export type Authored = ReturnType<typeof createAuthored>;

export interface AuthoredDeps {
  readonly bus: EventBus;
  readonly clock: Clock;
  readonly work: Pick<ModelWork, 'tierOf'>;
}

/** Counts graphs that agents write; `pipeline:authored` shows how many are valid. */
export function createAuthored({ bus, clock, work }: AuthoredDeps) {
  return async <Result extends { readonly warnings: readonly unknown[] }>(
    action: 'define' | 'execute',
    /** The nodes as the model wrote them. */
    nodes: unknown,
    agentId: string,
    run: () => Promise<Result>,
  ): Promise<Result> => {
    // A loaded graph was written at another time.
    if (!Array.isArray(nodes)) return run();
    const report = (outcome: { readonly valid: boolean; readonly warningCount: number; readonly errorCount: number }) =>
      bus.emit('pipeline:authored', {
        agentId,
        action,
        nodeCount: nodes.length,
        typedNodeCount: nodes.filter(isTyped).length,
        ...outcome,
        tier: work.tierOf(agentId, 'interactive'),
        timestamp: clock.now(),
      });
    try {
      const result = await run();
      report({ valid: true, warningCount: result.warnings.length, errorCount: 0 });
      return result;
    } catch (error) {
      // Other kinds of errors say nothing about the graph.
      if (error instanceof AppError && error.code === 'invalid_params')
        report({ valid: false, warningCount: 0, errorCount: Math.max(1, error.details.issues?.length ?? 0) });
      throw error;
    }
  };
}

const isTyped = (node: unknown) => typeof node === 'object' && node !== null && 'type_id' in node;
