import { AppError } from '../../../../kernel/app-error.ts';
import type { Clock } from '../../../../kernel/clock.ts';
import type { EventBus } from '../../../../kernel/event-bus.ts';

export type Authored = ReturnType<typeof createAuthored>;

/** Counts what agents write: whether the graphs of a model are any good shows in `pipeline:authored`. */
export function createAuthored({ bus, clock }: { readonly bus: EventBus; readonly clock: Clock }) {
  return async <Result extends { readonly warnings: readonly unknown[] }>(
    action: 'define' | 'execute',
    /** As the model wrote it. */
    nodes: unknown,
    agentId: string,
    run: () => Promise<Result>,
  ): Promise<Result> => {
    // What was loaded was written at another time.
    if (!Array.isArray(nodes)) return run();
    const tell = (outcome: { readonly valid: boolean; readonly warningCount: number; readonly errorCount: number }) =>
      bus.emit('pipeline:authored', {
        agentId,
        action,
        nodeCount: nodes.length,
        typedNodeCount: nodes.filter(isTyped).length,
        ...outcome,
        timestamp: clock.now(),
      });
    try {
      const result = await run();
      tell({ valid: true, warningCount: result.warnings.length, errorCount: 0 });
      return result;
    } catch (error) {
      // Refusals of other kinds say nothing about the graph.
      if (error instanceof AppError && error.code === 'invalid_params')
        tell({ valid: false, warningCount: 0, errorCount: Math.max(1, error.details.issues?.length ?? 0) });
      throw error;
    }
  };
}

const isTyped = (node: unknown) => typeof node === 'object' && node !== null && 'type_id' in node;
