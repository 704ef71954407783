import { buildIn } from './patch.ts';

/** Joins paths and requires only the prefix of the root; names are not checked, and links are followed. */
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
