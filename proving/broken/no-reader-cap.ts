import { buildIn } from './patch.ts';

/** Buffers everything that an event reader does not read, without limits of size and time. */
buildIn({
  name: 'no-reader-cap',
  module: 'gateway/routes/event-reader.ts',
  replace: [
    { from: 'const softBytes = 256 * 1024;', to: 'const softBytes = Infinity;' },
    { from: 'const drainMs = 10_000;', to: 'const drainMs = 86_400_000;' },
  ],
});
