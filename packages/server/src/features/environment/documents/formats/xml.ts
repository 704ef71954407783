import { SaxesParser } from 'saxes';
import { Refused } from './sink.ts';

export interface XmlHandlers {
  /** Names come without their prefixes. */
  open?(name: string, attribute: (name: string) => string | undefined): void;
  close?(name: string): void;
  text?(text: string): void;
}

const maxDepth = 256;
/** A text, a tag or a comment is kept until its end; longer ones only fill the memory. */
const maxTokenCharacters = 4_194_304;

/** Parses XML as it is unpacked. Entities are never expanded: a document that declares some is refused. */
export async function readXml(chunks: AsyncIterable<Buffer>, handlers: XmlHandlers): Promise<void> {
  const parser = new SaxesParser();
  let depth = 0;
  let tokenCharacters = 0;
  const seen = (): void => void (tokenCharacters = 0);
  parser.on('error', (error) => {
    throw new Refused('broken', `contains XML that is not well-formed (${error.message.slice(0, 100)})`);
  });
  parser.on('doctype', (doctype) => {
    if (/<!ENTITY/i.test(doctype)) throw new Refused('unsupported', 'declares XML entities, which are never expanded');
  });
  parser.on('opentag', ({ name, attributes }) => {
    seen();
    depth += 1;
    if (depth > maxDepth) throw new Refused('too_large', `nests XML more than ${maxDepth} levels deep`);
    handlers.open?.(localName(name), (wanted) => {
      for (const [key, value] of Object.entries(attributes)) if (localName(key) === wanted) return value;
      return undefined;
    });
  });
  parser.on('closetag', ({ name }) => {
    seen();
    depth -= 1;
    handlers.close?.(localName(name));
  });
  parser.on('text', (text) => handlers.text?.(text));
  parser.on('cdata', (text) => handlers.text?.(text));
  let decoder: TextDecoder | undefined;
  for await (const chunk of chunks) {
    decoder ??= new TextDecoder(encodingOf(chunk));
    for (let at = 0; at < chunk.length; at += 65_536) {
      const text = decoder.decode(chunk.subarray(at, at + 65_536), { stream: true });
      tokenCharacters += text.length;
      if (tokenCharacters > maxTokenCharacters) throw new Refused('too_large', `has a text or tag of more than ${maxTokenCharacters} characters`);
      parser.write(text);
    }
  }
  parser.write(decoder?.decode() ?? '').close();
}

const localName = (name: string): string => name.slice(name.indexOf(':') + 1);

function encodingOf(start: Buffer): string {
  if (start[0] === 0xff && start[1] === 0xfe) return 'utf-16le';
  return start[0] === 0xfe && start[1] === 0xff ? 'utf-16be' : 'utf-8';
}
