import { buildIn } from './patch.ts';

/** Keeps clients that left an event stream as readers. */
buildIn({
  name: 'leaking-readers',
  module: 'gateway/routes/event-stream.ts',
  replace: [{ from: 'readers.delete(reader);', to: '' }],
});
