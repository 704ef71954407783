import { buildIn } from './patch.ts';

/** Turns of one conversation do not wait for each other. */
buildIn({
  name: 'no-lanes',
  module: 'kernel/lane.ts',
  replace: [
    {
      from: 'async acquire(entry: LaneEntry): Promise<Lease> {',
      to: 'async acquire(entry: LaneEntry): Promise<Lease> { entry = { ...entry, key: `${entry.key} ${crypto.randomUUID()}` };',
    },
  ],
});
