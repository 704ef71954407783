import { buildIn } from './patch.ts';

/** Puts the environment of the daemon, as state for scripts, into pages that are opened by their addresses: no other surface shows it. */
buildIn({
  name: 'environment-in-pages',
  module: 'gateway/routes/dashboard.ts',
  replace: [
    {
      from: 'load() === undefined) return false;\n      page(call);',
      to: `load() === undefined) return false;
      const built = load();
      const state = '<script type="application/json">' + JSON.stringify(process.env) + '</script>';
      send(call, { ...built.index, bodies: { identity: Buffer.concat([built.index.bodies.identity, Buffer.from(state)]) } }, 'no-cache');`,
    },
  ],
});
