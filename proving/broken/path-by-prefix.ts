import { buildIn } from './patch.ts';

/** Paths are joined and must begin like the root; names are not looked at, and links are followed. */
buildIn({
  name: 'path-by-prefix',
  module: 'kernel/safe-path.ts',
  replace: [
    { from: '    if (unsafe) throw notHere();', to: "    if (unsafe && name !== '..') throw notHere();" },
    {
      from: '  return descriptorPaths ? openByDescriptor(root, names, make) : openByRealPath(root, names, make);',
      to: `  const path = join(root, ...names);
  if (!path.startsWith(root)) throw notHere();
  if (make) await mkdir(path, { recursive: true });
  return { at: (name) => join(path, name), sync: async () => {}, async [Symbol.asyncDispose]() {} };`,
    },
  ],
});
