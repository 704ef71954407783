import type { SpeechFormat } from '@gatehouse/contract';
import type { TtsConfig } from '../config.ts';
import type { Provider, VendorRow } from './entry.ts';
import { askProvider, bearer } from './request.ts';

export type SpeechEntry = TtsConfig['providers'][number];

export interface Spoken {
  readonly text: string;
  readonly voice: string;
  readonly format: SpeechFormat;
  /** 1 is the usual speed. */
  readonly speed: number | undefined;
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

export interface Sound {
  readonly bytes: Buffer;
  readonly format: SpeechFormat;
}

/** Runs the program of this machine: text in, WAV out. */
export type SpeakHere = (spoken: Spoken) => Promise<Buffer>;

export interface SpeechVendor extends VendorRow {
  /** US dollars per million characters, by model; one price when it is a number. */
  readonly prices: Readonly<Record<string, number>>;
  /** Its usual voice, when it has other voices than OpenAI. */
  readonly voice?: string;
  readonly maxCharacters: number;
  readonly speak: (provider: Provider<SpeechEntry>, spoken: Spoken, speakHere: SpeakHere) => Promise<Sound>;
}

const maxAnswerBytes = 26_214_400;
/** Formats of ElevenLabs; what it does not have is converted from MP3. */
const elevenLabsFormats: Readonly<Partial<Record<SpeechFormat, string>>> = { mp3: 'mp3_44100_128', opus: 'opus_48000_64' };

async function speakByOpenAi(provider: Provider<SpeechEntry>, { text, voice, format, speed, timeoutMs, signal }: Spoken): Promise<Sound> {
  const { body } = await askProvider(provider, {
    path: '/audio/speech',
    headers: bearer(provider),
    json: { model: provider.model, input: text, voice, response_format: format, ...(speed !== undefined && { speed }) },
    maxBytes: maxAnswerBytes,
    timeoutMs,
    signal,
  });
  return { bytes: body, format };
}

async function speakByElevenLabs(provider: Provider<SpeechEntry>, { text, voice, format, speed, timeoutMs, signal }: Spoken): Promise<Sound> {
  const own = elevenLabsFormats[format] === undefined ? 'mp3' : format;
  const { body } = await askProvider(provider, {
    path: `/text-to-speech/${encodeURIComponent(voice)}?output_format=${elevenLabsFormats[own]}`,
    headers: provider.key === undefined ? {} : { 'xi-api-key': provider.key },
    json: { text, model_id: provider.model, ...(speed !== undefined && { voice_settings: { speed: Math.min(1.2, Math.max(0.7, speed)) } }) },
    maxBytes: maxAnswerBytes,
    timeoutMs,
    signal,
  });
  return { bytes: body, format: own };
}

/** Prices from general knowledge, not compared with the price lists of the vendors; an entry of the configuration replaces them. ElevenLabs charges by plan. */
export const speechVendors: Readonly<Record<SpeechEntry['type'], SpeechVendor>> = {
  openai: {
    baseUrl: 'https://api.openai.com/v1',
    keyEnv: ['OPENAI_API_KEY'],
    model: 'tts-1',
    prices: { 'tts-1': 15, 'tts-1-hd': 30 },
    maxCharacters: 4096,
    speak: speakByOpenAi,
  },
  elevenlabs: {
    baseUrl: 'https://api.elevenlabs.io/v1',
    keyEnv: ['ELEVENLABS_API_KEY'],
    model: 'eleven_multilingual_v2',
    prices: {},
    voice: '21m00Tcm4TlvDq8ikWAM',
    maxCharacters: 5000,
    speak: speakByElevenLabs,
  },
  espeak: {
    keyEnv: [],
    model: 'espeak-ng',
    prices: { 'espeak-ng': 0 },
    voice: 'en',
    keyless: true,
    maxCharacters: 5000,
    async speak(_provider, spoken, speakHere) {
      return { bytes: await speakHere(spoken), format: 'wav' };
    },
  },
  'openai-compatible': { keyEnv: [], model: '', prices: {}, keyless: true, maxCharacters: 5000, speak: speakByOpenAi },
};

/** Clients of OpenAI have to name a voice, and the configuration has one of these by default: to another vendor they mean any voice. */
const openAiVoices: ReadonlySet<string> = new Set([
  'alloy',
  'ash',
  'ballad',
  'cedar',
  'coral',
  'echo',
  'fable',
  'marin',
  'nova',
  'onyx',
  'sage',
  'shimmer',
  'verse',
]);

/** Returns the voice in which a provider speaks: the one that a call names, that of its entry, or `tts.voice`. */
export function voiceOf({ entry }: Pick<Provider<SpeechEntry>, 'entry'>, named: string | undefined, configured: string): string {
  const { voice } = speechVendors[entry.type];
  const fits = (one: string | undefined) => one !== undefined && (voice === undefined || !openAiVoices.has(one));
  return [named, entry.voice, configured].find(fits) ?? voice ?? configured;
}
