import { buildIn } from './patch.ts';

/** Keeps clients that left an event stream as readers. */
buildIn({
  name: 'leaking-readers',
  module: 'gateway/routes/event-readers.ts',
  replace: [{ from: 'this.#readers.delete(reader);', to: '' }],
});
