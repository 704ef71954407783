import { buildIn } from './patch.ts';

/** A reader is cut as soon as the socket does not take everything at once. */
buildIn({
  name: 'cut-at-high-water',
  module: 'gateway/routes/event-reader.ts',
  replace: [{ from: '.write(bytes)) this.#deps.onBehind();', to: '.write(bytes)) this.cut();' }],
});
