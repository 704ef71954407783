import { readXml } from './xml.ts';
import type { Zip } from './zip.ts';
import { Refused } from './sink.ts';

/** Returns the parts that a part refers to, by relation id, as names in the container. */
export async function readRelations(zip: Zip, part: string): Promise<ReadonlyMap<string, { readonly target: string; readonly type: string }>> {
  const slash = part.lastIndexOf('/');
  const pieces = zip.stream(`${part.slice(0, slash + 1)}_rels/${part.slice(slash + 1)}.rels`);
  const found = new Map<string, { target: string; type: string }>();
  if (pieces === undefined) return found;
  await readXml(pieces, {
    open(name, attribute) {
      if (name !== 'Relationship' || attribute('TargetMode') === 'External' || found.size >= 50_000) return;
      const [id, target] = [attribute('Id'), attribute('Target')];
      if (id !== undefined && target !== undefined) found.set(id, { target: resolveName(part, target), type: attribute('Type') ?? '' });
    },
  });
  return found;
}

/** Resolves a reference inside a container; the result only ever names an entry of it. */
export function resolveName(from: string, target: string): string {
  const names = target.startsWith('/') ? [] : from.split('/').slice(0, -1);
  for (const name of target.split('#')[0]?.split('/') ?? []) {
    if (name === '..') names.pop();
    else if (name !== '' && name !== '.') names.push(name);
  }
  return names.join('/');
}

export function requirePart(zip: Zip, name: string): AsyncIterable<Buffer> {
  const pieces = zip.stream(name);
  if (pieces === undefined) throw new Refused('broken', `has no ${name}`);
  return pieces;
}
