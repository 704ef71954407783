import { speechFormats, type SpeechFormat, type TtsAutoMode } from '@gatehouse/contract';

/** What a directive in a text asks for. */
export interface Directive {
  readonly voice?: string;
  readonly format?: SpeechFormat;
  readonly speed?: number;
}

export interface Directed {
  /** The text without directives. */
  readonly text: string;
  /** The first one; undefined when there are none. */
  readonly directive: Directive | undefined;
}

/** Bounded, so that a text of openings costs nothing. */
const pattern = /\[\[tts(?::([^[\]]{0,300}))?\]\]/gi;

/** Takes the directives `[[tts]]` and `[[tts:voice=nova format=opus speed=1.2]]` out of a text; the first one counts, unknown keys are ignored. */
export function readDirectives(text: string): Directed {
  let directive: Directive | undefined;
  const rest = text.replace(pattern, (_found, values: string | undefined) => {
    directive ??= parse(values ?? '');
    return '';
  });
  return directive === undefined ? { text, directive } : { text: rest.replace(/[ \t]+\n/g, '\n').trim(), directive };
}

function parse(values: string): Directive {
  let found: Directive = {};
  for (const [, key = '', value = ''] of values.matchAll(/([a-z]{1,20})=([^\s]{1,100})/gi)) {
    const name = key.toLowerCase();
    if (name === 'voice' && /^[\w.+-]+$/.test(value)) found = { ...found, voice: value };
    const format = speechFormats.find((one) => one === value.toLowerCase());
    if (name === 'format' && format !== undefined) found = { ...found, format };
    const speed = Number(value);
    if (name === 'speed' && speed >= 0.25 && speed <= 4) found = { ...found, speed };
  }
  return found;
}

export interface AutoCheck {
  readonly shouldSynthesize: boolean;
  readonly strippedText?: string;
  readonly mode: TtsAutoMode;
}

/** Decides whether an answer is spoken. Answers that already have a file are not, except where they ask for it. */
export function checkAuto(
  mode: TtsAutoMode,
  { text, hasInboundAudio, hasMedia }: { readonly text: string; readonly hasInboundAudio: boolean; readonly hasMedia: boolean },
): AutoCheck {
  const { text: strippedText, directive } = readDirectives(text);
  const shouldSynthesize = strippedText.trim() !== '' && isWanted(mode, { hasInboundAudio, hasMedia, isTagged: directive !== undefined });
  return { shouldSynthesize, ...(directive !== undefined && { strippedText }), mode };
}

function isWanted(
  mode: TtsAutoMode,
  { hasInboundAudio, hasMedia, isTagged }: { readonly hasInboundAudio: boolean; readonly hasMedia: boolean; readonly isTagged: boolean },
): boolean {
  if (mode === 'tagged') return isTagged;
  if (mode === 'always') return !hasMedia;
  return (mode === 'inbound' || mode === 'voice_reply') && hasInboundAudio && !hasMedia;
}
