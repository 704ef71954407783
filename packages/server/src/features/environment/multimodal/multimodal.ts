import type { Live } from '../../../kernel/config/live.ts';
import { newId } from '../../../kernel/ids.ts';
import type { Jail } from '../../../kernel/jail.ts';
import { makeFoldersInside, writeFileInside } from '../../../kernel/safe-path.ts';
import type { ProvidersConfig } from '../../../llm/config.ts';
import type { Tool } from '../../../runtime/tool.ts';
import type { ModelWork } from '../../access/budgets/api.ts';
import type { AgentsApi } from '../../agents/agents/api.ts';
import type { ForAgent, MultimodalApi } from './api.ts';
import type { MultimodalConfig } from './config.ts';
import { createEngine, type EngineDeps } from './engine.ts';
import { createMethods, type MethodsDeps, type MultimodalMethods } from './methods.ts';
import type { PictureReader } from '../documents/api.ts';
import { HourlyCaps } from './providers/hourly-caps.ts';
import { createPictureReader } from './pictures/picture-reader.ts';
import { createFitPicture } from './pictures/shrink.ts';
import { createSources, type SourcesDeps } from './sources.ts';
import { createLocalPrograms } from './speech/local-programs.ts';
import { SpeechFiles, type SpeechFilesDeps } from './speech/speech-files.ts';
import { createTools } from './tools.ts';
import { createVision, type VisionDeps } from './pictures/vision.ts';

export interface MultimodalDeps
  extends
    Omit<EngineDeps, 'config' | 'programs' | 'charge' | 'caps'>,
    Pick<SourcesDeps, 'isInternal'>,
    Pick<SpeechFilesDeps, 'capacity' | 'taints'>,
    Pick<VisionDeps, 'models' | 'modelsFor'>,
    Pick<MethodsDeps, 'media' | 'defaultAgentOf' | 'deliver' | 'processLinks' | 'documents'> {
  readonly config: Live<MultimodalConfig & { readonly modelProviders: ProvidersConfig; readonly maxLinks: number }>;
  readonly agents: AgentsApi;
  readonly work: Pick<ModelWork, 'charge' | 'generate' | 'mediaCalls'>;
  readonly jail: () => Promise<Jail>;
}

export interface Multimodal extends Disposable {
  readonly methods: MultimodalMethods;
  readonly api: MultimodalApi;
  /** Reads scanned pages and images of documents. */
  readonly pictures: PictureReader;
  /** Those of what is configured. */
  readonly tools: () => readonly Tool[];
}

/** How long after the start old speech files are looked for. */
const sweepAfterMs = 60_000;
const maxImageBytes = 52_428_800;

/** Speech, images and video: providers by configuration, methods, and tools of the agents. Nothing is loaded before it is used. */
export function createMultimodal(deps: MultimodalDeps): Multimodal {
  const { clock, config, agents, work, capacity, taints, log, media } = deps;
  const programs = createLocalPrograms({ clock, jail: deps.jail });
  const caps = new HourlyCaps({ clock, mediaCalls: work.mediaCalls });
  const engine = createEngine({ ...deps, charge: work.charge, caps, programs });
  const files = new SpeechFiles({ clock, log, agents, capacity, taints });
  if (config.current.tts.providers.length > 0) files.schedule(sweepAfterMs);
  const visionConfig: VisionDeps['config'] = {
    get current() {
      return config.current.vision;
    },
    onChange: (run) => config.onChange((next, before) => run(next.vision, before.vision)),
  };
  const vision = createVision({ config: visionConfig, work, caps, models: deps.models, modelsFor: deps.modelsFor, fit: createFitPicture(clock) });
  const sources = createSources({ media, egress: deps.egressFor([]), isInternal: deps.isInternal });
  const methods = createMethods({ ...deps, engine, vision, sources, files });

  async function keepImage(agentId: string, base64: string, mimeType: string, tainted: boolean): Promise<string> {
    const agent = agents.find(agentId);
    if (agent === undefined) throw new TypeError('the agent of a turn exists');
    const bytes = Buffer.from(base64, 'base64');
    await capacity.assertCapacity(agent.workspaceDir, { bytes: bytes.byteLength, files: 1 });
    await makeFoldersInside(agent.workspaceDir, ['media/images']);
    const path = `media/images/${newId('img').replace('_', '-')}.${mimeType === 'image/jpeg' ? 'jpg' : mimeType.slice('image/'.length)}`;
    const place = { agentId, workspaceDir: agent.workspaceDir };
    if (tainted) await taints.mark(place, path, true, bytes);
    await writeFileInside(agent.workspaceDir, path, bytes, { maxBytes: maxImageBytes });
    if (!tainted) await taints.mark(place, path, false, bytes);
    return path;
  }

  function usable<Asked extends Pick<ForAgent, 'agentId' | 'call'>>(asked: Asked): Asked {
    agents.usable(asked.agentId, asked.call);
    return asked;
  }

  const all = createTools({ methods, keepImage });
  let offered: readonly Tool[] = [];
  /** The same list until the configuration offers others: prompts are cached by it. */
  function tools(): readonly Tool[] {
    const { transcription, tts, imageGen, vision: seeing, video } = config.current;
    const now: readonly Tool[] = [
      ...(seeing.enabled && seeing.models.length > 0 ? [all.analyze] : []),
      ...(transcription.providers.length > 0 ? [all.transcribe] : []),
      ...(video.providers.length > 0 ? [all.video] : []),
      ...(imageGen.providers.length > 0 ? [all.generate] : []),
      ...(tts.providers.length > 0 ? [all.speak] : []),
    ];
    if (now.length !== offered.length || now.some((tool, at) => tool !== offered[at])) offered = now;
    return offered;
  }

  return {
    methods,
    tools,
    api: {
      assertUsable: usable,
      isConfigured: (what) => engine.providersOf()[what].length > 0,
      transcribe: async (recording, asked) => engine.transcribe(recording, usable(asked)),
      speak: async (text, asked) => engine.speak(text, usable(asked)),
      generateImage: async (wish, asked) => engine.generateImage(wish, usable(asked)),
      autoCheck: engine.autoCheck,
      get autoMode() {
        return config.current.tts.autoMode;
      },
      get maxRecordingBytes() {
        return config.current.transcription.maxBytes;
      },
      get transcribesNotes() {
        return config.current.transcription.autoTranscribe && config.current.transcription.providers.length > 0;
      },
    },
    pictures: createPictureReader({ vision, agents, config: visionConfig, defaultAgentOf: deps.defaultAgentOf }),
    [Symbol.dispose]: () => files[Symbol.dispose](),
  };
}
