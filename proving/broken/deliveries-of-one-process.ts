import { changeExports } from './patch.ts';

/** Recognizes only the webhooks that this process has accepted itself. */
changeExports({
  name: 'deliveries-of-one-process',
  module: 'features/unattended/webhooks/store.ts',
  exports: {
    recognize: (original: (tx: unknown, row: unknown, sinceMs: number) => Promise<unknown>) => {
      let sinceFirstMs: number | undefined;
      return (tx: unknown, row: unknown, sinceMs: number) => {
        sinceFirstMs ??= Date.now() - 1;
        return original(tx, row, Math.max(sinceMs, sinceFirstMs));
      };
    },
  },
});
