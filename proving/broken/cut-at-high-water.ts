import { buildIn } from './patch.ts';

/** Cuts a reader as soon as the socket does not accept everything at once. */
buildIn({
  name: 'cut-at-high-water',
  module: 'gateway/routes/event-reader.ts',
  replace: [{ from: '.write(bytes)) this.#deps.onBehind();', to: '.write(bytes)) this.cut();' }],
});
