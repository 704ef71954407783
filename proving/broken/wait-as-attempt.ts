import { buildIn } from './patch.ts';

/** Each wait for a provider counts as an attempt, of which there are five. */
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
