import { randomBytes } from 'node:crypto';
import type { TracedError } from '@gatehouse/contract';
import { extensionsOf, type SpeechFormat } from './speech/formats.ts';
import { AppError } from '../../../kernel/app-error.ts';
import type { Core } from '../../../kernel/core.ts';
import type { Live } from '../../../kernel/config/live.ts';
import { tracedPart } from '../../../kernel/work-trace.ts';
import type { ProvidersConfig } from '../../../llm/config.ts';
import { ModelError } from '../../../llm/model.ts';
import { ProviderStates } from '../../../llm/provider-states.ts';
import type { ModelWork } from '../../access/budgets/api.ts';
import type { ForAgent, ImageOf, MultimodalApi, SpeechOf, TranscriptOf } from './api.ts';
import type { MultimodalConfig } from './config.ts';
import { type Answered, ProviderChain } from './providers/chain.ts';
import type { HourlyCaps } from './providers/hourly-caps.ts';
import { keepWhileEqual, type Provider, type ProviderEntry, type ResolveDeps, resolveProviders } from './providers/entry.ts';
import { type ImageEntry, imageVendors } from './providers/image-vendors.ts';
import { type SpeechEntry, speechVendors, voiceOf } from './providers/speech-vendors.ts';
import { type TranscriptionEntry, transcriptionVendors } from './providers/transcription-vendors.ts';
import { type VideoEntry, videoVendors } from './providers/video-vendors.ts';
import { sniff, sniffAs } from './sniff.ts';
import { checkAuto, readDirectives } from './speech/directives.ts';
import { estimateSeconds } from './speech/duration.ts';
import type { LocalPrograms } from './speech/local-programs.ts';

export interface EngineDeps extends Core {
  readonly config: Live<MultimodalConfig & { readonly modelProviders: ProvidersConfig }>;
  readonly env: ResolveDeps['env'];
  readonly egressFor: ResolveDeps['egressFor'];
  readonly charge: ModelWork['charge'];
  readonly caps: HourlyCaps;
  readonly programs: LocalPrograms;
}

const firstPauseMs = 30_000;
/** Dollars to 1e-9 dollar. */
const nano = (dollars: number): number => Math.round(dollars * 1e9);
/** Tokens that a second of video costs at most, and a margin for the prompt. */
const videoTokensPerSecond = 300;

/** Asks the configured providers of speech, images and video. */
export function createEngine(deps: EngineDeps) {
  const { clock, config, env, egressFor, caps, programs } = deps;
  const states = new ProviderStates(deps.bus, clock, () => firstPauseMs);
  const chain = new ProviderChain({
    states,
    charge: deps.charge,
    onFallback: (from, to, error) => deps.log.warn({ from, to, kind: error.kind, err: error }, 'A media provider failed; asking the next one'),
  });
  // What is known of a provider belongs to its key: an unrelated change must not forget it.
  const lists = {
    transcription: keepWhileEqual(resolveProviders<TranscriptionEntry>),
    speech: keepWhileEqual(resolveProviders<SpeechEntry>),
    imageGeneration: keepWhileEqual(resolveProviders<ImageEntry>),
    video: keepWhileEqual(resolveProviders<VideoEntry>),
  };
  const resolved = () => {
    const { transcription, tts, imageGen, video, modelProviders } = config.current;
    const resolving = { clock, env, modelProviders, egressFor };
    return {
      transcription: lists.transcription('media.transcription.providers', transcription.providers, transcriptionVendors, resolving),
      speech: lists.speech('tts.providers', tts.providers, speechVendors, resolving),
      imageGeneration: lists.imageGeneration('imageGen.providers', imageGen.providers, imageVendors, resolving),
      video: lists.video('media.video.providers', video.providers, videoVendors, resolving),
    };
  };
  const newBoundary = () => `gatehouse-${randomBytes(18).toString('hex')}`;

  /** Counts a request against the cap of its agent. One without a provider is refused by the chain, and asks for no count. */
  function counted<T>(
    operation: keyof ReturnType<typeof resolved>,
    { maxPerHour }: { readonly maxPerHour: number },
    asked: ForAgent,
    run: () => Promise<T>,
  ): Promise<T> {
    if (resolved()[operation].length === 0) return run();
    return caps.count(operation, { agentId: asked.agentId, maxPerHour }, run);
  }

  /** Records what was asked for traces and reports: counts and codes, never content. */
  async function traced<Entry extends ProviderEntry, T>(
    operation: string,
    asked: ForAgent,
    ask: (asking: (provider: Provider<Entry>) => void) => Promise<Answered<Entry, T>>,
    factsOf: (value: T) => Readonly<Record<string, number>> = () => ({}),
  ): Promise<Answered<Entry, T>> {
    const startedAtMs = clock.now();
    const begun = clock.monotonic();
    const base = {
      kind: 'media' as const,
      traceId: asked.call.traceId,
      ...tracedPart(asked.call.agentCaller?.turn),
      agentId: asked.agentId,
      principalId: asked.call.agentCaller?.principalId ?? asked.call.identity.principalId,
      ...(asked.conversationRef !== undefined && { conversationRef: asked.conversationRef }),
      startedAtMs,
    };
    let last: Provider<Entry> | undefined;
    const about = (one: Provider<Entry> | undefined) =>
      one === undefined ? { operation } : { operation, provider: one.name, keyless: one.key === undefined };
    try {
      const answer = await ask((one) => (last = one));
      const { provider, model, value, costNano } = answer;
      deps.traceWork({
        ...base,
        outcome: 'ok',
        model: `${provider.name}/${model}`,
        modelCalls: 1,
        costNano,
        facts: {
          ...about(provider),
          latencyMs: Math.round(clock.monotonic() - begun),
          ...factsOf(value),
        },
      });
      return answer;
    } catch (error) {
      const isAborted = asked.signal.aborted;
      deps.traceWork({
        ...base,
        outcome: isAborted ? 'cancelled' : 'failed',
        error: tracedError(error, clock.now()),
        facts: about(last),
      });
      throw error;
    }
  }

  async function transcribe({ bytes, language, param }: Parameters<MultimodalApi['transcribe']>[0], asked: ForAgent): Promise<TranscriptOf> {
    const { transcription } = config.current;
    if (bytes.byteLength > transcription.maxBytes)
      throw new AppError('payload_too_large', `${param}: larger than ${transcription.maxBytes} bytes`, { param });
    const type = await sniffAs('audio', bytes, param);
    const most = estimateSeconds(bytes, type.mimeType);
    const priceOf = (provider: Provider<(typeof transcription)['providers'][number]>, seconds: number): number | null => {
      const row = transcriptionVendors[provider.entry.type];
      const perMinute = provider.entry.pricePerMinute ?? row.prices[provider.model];
      return perMinute === undefined ? null : nano((perMinute * Math.max(seconds, row.leastSeconds ?? 0)) / 60);
    };
    const { timeoutMs } = transcription;
    const answer = await counted('transcription', transcription, asked, () =>
      traced(
        'transcription',
        asked,
        (asking) =>
          chain.ask(
            {
              operation: 'transcription',
              asking,
              section: 'media.transcription.providers',
              priceKey: 'pricePerMinute',
              providers: resolved().transcription,
              mostNano: (provider) => priceOf(provider, most),
              async ask(provider) {
                const recording = {
                  bytes,
                  ...type,
                  language: language ?? transcription.language,
                  boundary: newBoundary(),
                  timeoutMs,
                  signal: asked.signal,
                };
                const value = await transcriptionVendors[provider.entry.type].transcribe(provider, recording);
                const seconds = value.durationMs === undefined ? most : value.durationMs / 1000;
                return { value: { ...value, durationMs: value.durationMs ?? Math.round(most * 1000) }, costNano: priceOf(provider, seconds) };
              },
            },
            asked,
          ),
        ({ durationMs }) => ({ durationMs: durationMs ?? 0 }),
      ),
    );
    return { ...answer.value, provider: answer.provider.name, model: answer.model };
  }

  async function speak(wanted: Parameters<MultimodalApi['speak']>[0], asked: ForAgent): Promise<SpeechOf> {
    const { tts } = config.current;
    const { text, directive } = readDirectives(wanted.text);
    if (text.trim() === '') throw new AppError('invalid_params', 'text: nothing to speak', { param: 'text' });
    const { length } = text;
    if (length > tts.maxTextLength)
      throw new AppError('invalid_params', `text: expected at most ${tts.maxTextLength} characters (tts.maxTextLength), not ${length}`, {
        param: 'text',
      });
    const format: SpeechFormat = directive?.format ?? wanted.format ?? tts.format ?? (wanted.forVoiceNote === true ? 'opus' : 'mp3');
    const named = directive?.voice ?? wanted.voice;
    const priceOf = ({ entry, model }: Provider<SpeechEntry>): number | null => {
      const perMillion = entry.pricePerMillionCharacters ?? speechVendors[entry.type].prices[model];
      return perMillion === undefined ? null : nano((perMillion * length) / 1_000_000);
    };
    const spoken = { text, format, speed: directive?.speed ?? wanted.speed, timeoutMs: tts.timeoutMs, signal: asked.signal };
    const { value, provider, model } = await counted('speech', tts, asked, () =>
      traced('speech', asked, (asking) =>
        chain.ask(
          {
            operation: 'speech',
            asking,
            section: 'tts.providers',
            priceKey: 'pricePerMillionCharacters',
            providers: resolved().speech,
            mostNano: priceOf,
            async ask(one) {
              const voice = voiceOf(one, named, tts.voice);
              const sound = await speechVendors[one.entry.type].speak(one, { ...spoken, voice }, programs.speak);
              return { value: await checkSound(one.name, sound.bytes), costNano: priceOf(one) };
            },
          },
          asked,
        ),
      ),
    );
    const made =
      value.format === format || !programs.canConvert() ? value : { bytes: await programs.convert(value.bytes, format, asked.signal), format };
    return { bytes: made.bytes, format: made.format, ...extensionsOf[made.format], provider: provider.name, model };
  }

  async function generateImage(wish: Parameters<MultimodalApi['generateImage']>[0], asked: ForAgent): Promise<ImageOf> {
    const { imageGen } = config.current;
    const providers = resolved().imageGeneration;
    const size = wish.size === undefined || wish.size === 'auto' ? imageGen.size : wish.size;
    const reference = wish.reference && { bytes: wish.reference, ...(await sniffAs('image', wish.reference, 'reference_image')) };
    const { quality, safety, timeoutMs, maxBytes } = imageGen;
    const priceOf = (provider: Provider<(typeof imageGen)['providers'][number]>): number | null => {
      const price = provider.entry.pricePerImage ?? imageVendors[provider.entry.type].priceOf(wish.model ?? provider.model, { size, quality });
      return price === undefined ? null : nano(price);
    };
    return counted('imageGeneration', imageGen, asked, async () => {
      const { value, provider, model } = await traced('imageGeneration', asked, (asking) =>
        chain.ask(
          {
            operation: 'imageGeneration',
            asking,
            section: 'imageGen.providers',
            priceKey: 'pricePerImage',
            // Another vendor has no model of this name.
            providers: wish.model === undefined ? providers : providers.slice(0, 1),
            model: wish.model,
            mostNano: priceOf,
            // What one filter refused is not offered to the next one.
            isFinal: ({ kind }) => kind === 'bad_request',
            async ask(one) {
              const wanted = { prompt: wish.prompt, model: wish.model ?? one.model, size, quality, safety, reference };
              const bytes = await imageVendors[one.entry.type].generate(one, {
                ...wanted,
                boundary: newBoundary(),
                maxBytes,
                timeoutMs,
                signal: asked.signal,
              });
              return { value: bytes, costNano: priceOf(one) };
            },
          },
          asked,
        ),
      );
      return { bytes: value, ...(await sniffAs('image', value, 'image')), provider: provider.name, model };
    });
  }

  async function describeVideo(
    {
      bytes,
      prompt,
      provider: only,
      param,
    }: { readonly bytes: Uint8Array; readonly prompt: string; readonly provider?: string | undefined; readonly param: string },
    asked: ForAgent,
  ) {
    const { video } = config.current;
    const providers = resolved().video.filter(({ name }) => only === undefined || name === only);
    if (providers.length === 0)
      throw new AppError(
        'precondition_failed',
        'No video-capable vision provider available: set media.video.providers (google, or openai-compatible)',
      );
    if (bytes.byteLength > video.maxBytes) throw new AppError('payload_too_large', `${param}: larger than ${video.maxBytes} bytes`, { param });
    const { mimeType } = await sniffAs('video', bytes, param);
    const seconds = Math.min(estimateSeconds(bytes, mimeType), 3600);
    const mostTokens = { input: Math.ceil(seconds * videoTokensPerSecond) + Math.ceil(prompt.length / 2) + 500, output: video.maxTokens };
    const priceOf = (
      provider: Provider<(typeof video)['providers'][number]>,
      tokens: { readonly input: number; readonly output: number },
    ): number | null => {
      const price = provider.entry.cost ?? videoVendors[provider.entry.type].priceOf(provider.model);
      return price === null ? null : Math.round((tokens.input * price.input + tokens.output * price.output) * 1000);
    };
    const { value, provider, model } = await counted('video', video, asked, () =>
      traced('video', asked, (asking) =>
        chain.ask(
          {
            operation: 'video',
            asking,
            section: 'media.video.providers',
            priceKey: 'cost',
            providers,
            mostNano: (one) => priceOf(one, mostTokens),
            async ask(one) {
              const footage = { bytes, mimeType, prompt, maxTokens: video.maxTokens, timeoutMs: video.timeoutMs, signal: asked.signal };
              const answer = await videoVendors[one.entry.type].describe(one, footage);
              const tokens = answer.tokens ?? mostTokens;
              return { value: answer.text, costNano: priceOf(one, tokens), tokens };
            },
          },
          asked,
        ),
      ),
    );
    return { description: value, provider: provider.name, model };
  }

  return {
    transcribe,
    speak,
    generateImage,
    describeVideo,
    providersOf: () => resolved(),
    statesOf: (what: keyof ReturnType<typeof resolved>) => chain.statesOf(resolved()[what]),
    autoCheck: (answer: Parameters<MultimodalApi['autoCheck']>[0]) => checkAuto(config.current.tts.autoMode, answer),
  };
}
const formatOf: Readonly<Record<string, SpeechFormat>> = { mp3: 'mp3', opus: 'opus', ogg: 'opus', wav: 'wav', aac: 'aac', flac: 'flac' };

/** Servers answer in another format than they were asked for, or with a page. */
async function checkSound(provider: string, bytes: Buffer): Promise<{ readonly bytes: Buffer; readonly format: SpeechFormat }> {
  const format = formatOf[(await sniff(bytes))?.extension ?? ''];
  if (format === undefined) throw new ModelError('bad_response', `${provider} did not answer with sound`);
  return { bytes, format };
}

export type Engine = ReturnType<typeof createEngine>;

/** Returns a failure as a trace keeps it, with the provider's own sentence. */
function tracedError(error: unknown, nowMs: number): TracedError {
  if (!(error instanceof AppError)) return { kind: 'internal' };
  const { retryAfterMs } = error.details;
  return {
    kind: error.code,
    text: error.cause instanceof ModelError ? error.cause.message : error.message,
    ...(retryAfterMs !== undefined && { retryAtMs: Math.round(nowMs + retryAfterMs) }),
  };
}
