import type { Params, ResultInput } from '@gatehouse/contract';
import { AppError } from '../../../kernel/app-error.ts';
import { recordAudit } from '../../../kernel/audit.ts';
import { type CallContext, isTaintedCall } from '../../../kernel/call-context.ts';
import type { Core } from '../../../kernel/core.ts';
import type { Live } from '../../../kernel/config/live.ts';
import type { HandlersOf } from '../../../kernel/handlers.ts';
import { createLanes, type Lease } from '../../../kernel/lane.ts';
import type { Agent, AgentsApi } from '../../agents/agents/api.ts';
import type { MediaApi } from '../media/api.ts';
import type { ForAgent, ImageOf } from './api.ts';
import type { MultimodalConfig } from './config.ts';
import type { Engine } from './engine.ts';
import { isVisionAllowed } from './pictures/scope-rules.ts';
import { voiceOf } from './providers/speech-vendors.ts';
import type { Sources } from './sources.ts';
import type { SpeechFiles } from './speech/speech-files.ts';
import type { Vision } from './pictures/vision.ts';

type LinkResult = ResultInput<'link.process'>;

export interface MethodsDeps extends Pick<Core, 'db' | 'bus' | 'clock' | 'log'> {
  readonly config: Live<MultimodalConfig & { readonly maxLinks: number }>;
  readonly agents: Pick<AgentsApi, 'usable' | 'defaultId' | 'find'>;
  /** The agent of calls that name none. */
  readonly defaultAgentOf: (call: CallContext) => string;
  readonly engine: Engine;
  readonly vision: Vision;
  readonly sources: Sources;
  readonly files: SpeechFiles;
  readonly media: Pick<MediaApi, 'find' | 'read'>;
  /** Sends an image to the chat of a call; fails when it cannot. */
  readonly deliver: (image: ImageOf, call: CallContext) => Promise<void>;
  readonly processLinks: (text: string, call: CallContext) => Promise<LinkResult>;
  readonly documents: () => ResultInput<'media.providers'>['documentExtraction'];
}

type Names =
  | 'audio.transcribe'
  | `media.${'transcribe' | 'describe_video' | 'providers' | 'test.stt' | 'test.tts' | 'test.vision' | 'test.video' | 'test.link'}`
  | `image.${'analyze' | 'generate'}`
  | `tts.${'synthesize' | 'auto_check'}`;
export type MultimodalMethods = HandlersOf<Names>;

const prompts = {
  image: 'Describe this image in detail: what it shows, the text in it, and what is unusual.',
  video: 'Describe this video in a few sentences: what happens, who or what is seen, and what is said.',
};
const denied = 'Vision analysis not available for this context.';
const fetchMs = 60_000;
/** Files of each kind in memory at once: those queued for a provider would fill it. */
const maxLoaded = 8;
/** Recordings, images and video in base64 are decoded where they are checked, within these. */
const most = { audio: 26_214_400, image: 20_971_520, video: 52_428_800 };

export function createMethods(deps: MethodsDeps): MultimodalMethods {
  const { agents, engine, vision, sources, config } = deps;

  function agentOf(agentId: string | undefined, call: CallContext): Agent {
    return agents.usable(call.agentCaller?.agentId ?? agentId ?? deps.defaultAgentOf(call), call);
  }
  const askedBy = (agent: Agent, call: CallContext): ForAgent => ({
    agentId: agent.id,
    conversationRef: call.agentCaller?.conversationRef,
    call,
    signal: call.signal,
  });

  const loaded = createLanes();
  let files = 0;
  /** Waits until a file of a kind may be loaded; dispose of the result when it is not needed any more. */
  function slot(kind: 'audio' | 'image' | 'video', { identity, signal }: CallContext): Promise<Lease> {
    files += 1;
    return loaded.acquire({ key: String(files), group: kind, groupLimit: maxLoaded, principalId: identity.principalId, signal });
  }

  async function imageOf({ source_type: type, source = '', attachment_url: url }: Params<'image.analyze'>, agent: Agent, call: CallContext) {
    const wanted = { param: url === undefined ? 'source' : 'attachment_url', maxBytes: config.current.vision.maxBytes, timeoutMs: fetchMs };
    if (url !== undefined || type === 'attachment') return sources.attachment(url ?? source, wanted, call);
    if (type === 'url') return sources.fetched(source, wanted, call);
    if (type === 'file') return sources.file(agent, source, wanted);
    return sources.encoded(source, wanted);
  }

  async function generateImage({ prompt, size, model, reference_image: from, agentId }: Params<'image.generate'>, call: CallContext) {
    const agent = agentOf(agentId, call);
    const wanted = { param: 'reference_image', maxBytes: most.image, timeoutMs: fetchMs };
    const reference = from === undefined ? undefined : (await sources.attachment(from, wanted, call)).bytes;
    const image = await engine.generateImage({ prompt, size, model, reference }, askedBy(agent, call));
    const metadata = { agentId: agent.id, provider: image.provider, model: image.model, bytes: image.bytes.byteLength };
    await recordAudit(deps, call, { actionType: 'image.generate', classification: 'mutate', target: agent.id, metadata });
    return image;
  }

  return {
    async 'audio.transcribe'({ audio, language, agentId }, call) {
      const agent = agentOf(agentId, call);
      try {
        const { bytes } = sources.encoded(audio, { param: 'audio', maxBytes: most.audio });
        return transcriptOf(await engine.transcribe({ bytes, language, param: 'audio' }, askedBy(agent, call)));
      } catch (error) {
        return { error: sentenceOf(error) };
      }
    },
    async 'media.transcribe'({ attachment_url: url, language, agentId }, call) {
      const agent = agentOf(agentId, call);
      const wanted = { param: 'attachment_url', maxBytes: config.current.transcription.maxBytes, timeoutMs: fetchMs };
      using _slot = await slot('audio', call);
      const { bytes } = await sources.attachment(url, wanted, call);
      return transcriptOf(await engine.transcribe({ bytes, language, param: 'attachment_url' }, askedBy(agent, call)));
    },
    async 'media.describe_video'({ attachment_url: url, prompt = prompts.video, agentId }, call) {
      const agent = agentOf(agentId, call);
      if (engine.providersOf().video.length === 0) throw noVideo();
      const wanted = { param: 'attachment_url', maxBytes: config.current.video.maxBytes, timeoutMs: fetchMs };
      using _slot = await slot('video', call);
      const { bytes } = await sources.attachment(url, wanted, call);
      return await engine.describeVideo({ bytes, prompt, param: 'attachment_url' }, askedBy(agent, call));
    },
    async 'media.providers'() {
      const { tts, imageGen, vision: seeing } = config.current;
      const { transcription, speech, imageGeneration, video } = engine.providersOf();
      const [stt, voice, image] = [transcription[0], speech[0], imageGeneration[0]];
      const fallback = (all: readonly { readonly name: string }[]) => all.slice(1).map(({ name }) => name);
      const agent = agents.find(agents.defaultId);
      const models = agent === undefined || !seeing.enabled ? [] : vision.seeing(agent, undefined);
      const providers = [...new Set(models.map(({ provider }) => provider))];
      const videoCapable = video.filter(({ missing }) => missing === undefined).map(({ name }) => name);
      return {
        stt:
          stt === undefined
            ? null
            : { provider: stt.name, model: stt.model, fallback: fallback(transcription), states: engine.statesOf('transcription') },
        tts:
          voice === undefined
            ? null
            : {
                provider: voice.name,
                voice: voiceOf(voice, undefined, tts.voice),
                format: tts.format ?? null,
                autoMode: tts.autoMode,
                fallback: fallback(speech),
                states: engine.statesOf('speech'),
              },
        vision:
          providers.length === 0 && videoCapable.length === 0
            ? null
            : { providers, ...(providers[0] !== undefined && { defaultProvider: providers[0] }), videoCapable, states: engine.statesOf('video') },
        imageGen:
          image === undefined
            ? null
            : {
                provider: image.name,
                model: image.model,
                fallback: fallback(imageGeneration),
                maxPerHour: imageGen.maxPerHour,
                states: engine.statesOf('imageGeneration'),
              },
        documentExtraction: deps.documents(),
        linkUnderstanding: { enabled: true, maxLinks: config.current.maxLinks },
      };
    },
    async 'media.test.stt'({ audio, language }, call) {
      const { bytes } = sources.encoded(audio, { param: 'audio', maxBytes: most.audio });
      const answer = await engine.transcribe({ bytes, language, param: 'audio' }, askedBy(agentOf(undefined, call), call));
      return { ...transcriptOf(answer), provider: answer.provider };
    },
    async 'media.test.tts'(params, call) {
      const { bytes, mimeType, provider } = await engine.speak(params, askedBy(agentOf(undefined, call), call));
      return { audio: bytes.toString('base64'), mimeType, sizeBytes: bytes.byteLength, provider };
    },
    async 'media.test.vision'({ image, prompt = prompts.image, provider }, call) {
      const agent = agentOf(undefined, call);
      const { bytes } = sources.encoded(image, { param: 'image', maxBytes: most.image });
      return vision.describe(agent, { bytes, prompt, provider, param: 'image' }, askedBy(agent, call));
    },
    async 'media.test.video'({ video, prompt = prompts.video, provider }, call) {
      const { bytes } = sources.encoded(video, { param: 'video', maxBytes: most.video });
      return engine.describeVideo({ bytes, prompt, provider, param: 'video' }, askedBy(agentOf(undefined, call), call));
    },
    async 'media.test.link'({ url }, call) {
      const { text, links, errors } = await deps.processLinks(url, call);
      return { enrichedText: text, linksProcessed: links.length, errors: [...errors] };
    },
    async 'image.analyze'({ prompt = prompts.image, ...params }, call) {
      const agent = agentOf(params.agentId, call);
      // Before anything is fetched: a request shows the server of the address that somebody is there.
      if (!isVisionAllowed(config.current.vision.scopeRules, call)) return { description: denied };
      using _slot = await slot('image', call);
      const { bytes } = await imageOf(params, agent, call);
      const param = params.attachment_url === undefined ? 'source' : 'attachment_url';
      return await vision.describe(agent, { bytes, prompt, param }, askedBy(agent, call));
    },
    async 'image.generate'(params, call) {
      // Denied and unknown agents are errors as everywhere.
      agentOf(params.agentId, call);
      try {
        const image = await generateImage(params, call);
        const { mimeType, bytes } = image;
        if (call.agentCaller?.turn?.endpoint !== undefined) {
          try {
            await deps.deliver(image, call);
            return { success: true as const, delivered: true as const, mimeType };
          } catch (error) {
            deps.log.warn({ err: error }, 'Failed to deliver a generated image; returning it instead');
          }
        }
        return { success: true as const, imageBase64: bytes.toString('base64'), mimeType };
      } catch (error) {
        return { success: false as const, error: sentenceOf(error) };
      }
    },
    async 'tts.synthesize'({ agentId, ...wanted }, call) {
      const agent = agentOf(agentId, call);
      const forVoiceNote = voiceNotePlatforms.has(call.agentCaller?.turn?.endpoint?.channelType ?? '');
      const sound = await engine.speak({ ...wanted, forVoiceNote }, askedBy(agent, call));
      const filePath = await deps.files.write(agent, sound.bytes, sound.extension, isTaintedCall(call));
      const metadata = { agentId: agent.id, provider: sound.provider, model: sound.model, bytes: sound.bytes.byteLength };
      await recordAudit(deps, call, { actionType: 'tts.synthesize', classification: 'mutate', target: filePath, metadata });
      return { filePath, mimeType: sound.mimeType, sizeBytes: sound.bytes.byteLength };
    },
    async 'tts.auto_check'({ response_text: text, has_inbound_audio: hasInboundAudio, has_media_url: hasMedia }) {
      return engine.autoCheck({ text, hasInboundAudio, hasMedia });
    },
  };
}

/** Platforms whose voice notes are Opus. */
export const voiceNotePlatforms: ReadonlySet<string> = new Set(['telegram', 'whatsapp', 'signal', 'discord', 'matrix']);

const noVideo = (): AppError =>
  new AppError('precondition_failed', 'No video-capable vision provider available: set media.video.providers (google, or openai-compatible)');

function transcriptOf({
  text,
  language,
  durationMs,
}: {
  readonly text: string;
  readonly language?: string | undefined;
  readonly durationMs?: number | undefined;
}) {
  return { text, ...(language !== undefined && { language }), ...(durationMs !== undefined && { durationMs }) };
}

/** Returns the sentence of an expected failure; others are faults of the server, which stay errors. */
function sentenceOf(error: unknown): string {
  if (error instanceof AppError && error.code !== 'internal' && error.code !== 'cancelled') return error.message;
  throw error;
}
