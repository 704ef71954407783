import { buildIn } from './patch.ts';

/** Whoever left an event stream goes on being one of its readers. */
buildIn({
  name: 'leaking-readers',
  module: 'gateway/routes/event-stream.ts',
  replace: [{ from: 'readers.delete(reader);', to: '' }],
});
