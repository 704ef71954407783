import { buildIn } from './patch.ts';

/** Counts each wait for a provider as one of five attempts. */
buildIn({
  name: 'wait-as-attempt',
  module: 'features/unattended/durable/durable.ts',
  replace: [
    {
      from: 'const wait = waitForProvider(item.waiting,',
      to: 'const wait = (item.waiting?.waits ?? 0) >= 4 ? undefined : waitForProvider(item.waiting,',
    },
  ],
});
