import { changeExports } from './patch.ts';

/** Acknowledges stops without storing them: they are in force in this process alone. */
changeExports({
  name: 'stops-in-memory',
  module: 'kernel/db/postgres/storage.ts',
  exports: {
    openPostgresStorage:
      (original: (options: object) => Promise<{ write(unit: object): Promise<{ error?: { kept?: unknown } }> }>) => async (options: object) => {
        const stops = ['autonomy.kill', 'autonomy.revoke', 'subagents.kill', 'tokens.delete', 'agents.save', 'sessions.delete'];
        const storage = await original(options);
        return {
          ...storage,
          async write(unit: { operation: { name: string; run(tx: unknown, input: unknown): Promise<unknown> } }) {
            const { operation } = unit;
            if (!stops.includes(operation.name)) return storage.write(unit);
            const run = async (tx: unknown, input: unknown) => {
              throw Object.assign(new Error('not stored'), { kept: { is: await operation.run(tx, input) } });
            };
            const outcome = await storage.write({ ...unit, operation: { ...operation, run } });
            const kept = outcome?.error?.kept as { is: unknown } | undefined;
            return kept === undefined ? outcome : kept.is;
          },
        };
      },
  },
});
