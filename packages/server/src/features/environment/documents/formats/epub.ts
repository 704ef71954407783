import { readMarkup } from './markup.ts';
import { requirePart, resolveName } from './office.ts';
import { Refused, type Sink } from './sink.ts';
import { readXml } from './xml.ts';
import type { Zip } from './zip.ts';

/** EPUB: its chapters in the order of the book. */
export async function readEpub(zip: Zip, sink: Sink): Promise<void> {
  let root = '';
  await readXml(requirePart(zip, 'META-INF/container.xml'), {
    open(name, attribute) {
      if (name === 'rootfile' && root === '') root = attribute('full-path') ?? '';
    },
  });
  const items = new Map<string, string>();
  const spine: string[] = [];
  await readXml(requirePart(zip, root), {
    open(name, attribute) {
      if (name === 'item' && items.size < 20_000) items.set(attribute('id') ?? '', decodeName(attribute('href') ?? ''));
      if (name === 'itemref' && spine.length < 20_000) spine.push(attribute('idref') ?? '');
    },
  });
  const chapters = spine.flatMap((id) => {
    const href = items.get(id);
    return href === undefined ? [] : [resolveName(root, href)];
  });
  const encryption = (await zip.read('META-INF/encryption.xml'))?.toString() ?? '';
  // Fonts may be obscured; a chapter never is.
  if (chapters.some((name) => encryption.includes(`"${name}"`))) throw new Refused('encrypted', 'is protected against copying (DRM)');
  let number = 0;
  for (const name of chapters) {
    const bytes = await zip.read(name);
    if (bytes === undefined) continue;
    number += 1;
    sink.page(`Chapter ${number}`);
    await readMarkup(bytes.toString(), sink, false);
  }
}

function decodeName(href: string): string {
  try {
    return decodeURIComponent(href);
  } catch {
    return href;
  }
}
