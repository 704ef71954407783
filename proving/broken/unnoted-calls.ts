import { buildIn } from './patch.ts';

/** Knows of the model calls of a turn only what its commits store. */
buildIn({ name: 'unnoted-calls', module: 'runtime/model-calls.ts', replace: [{ from: 'made?.add(record);', to: '' }] });
