import { AppError } from '../../../../kernel/app-error.ts';
import type { ModelInfo, ModelMessage, ModelPart } from '../../../../llm/model.ts';
import type { Models } from '../../../../llm/models.ts';
import type { Asked } from '../../../../llm/unsupported.ts';

type MediaKind = Exclude<ModelInfo['input'][number], 'text'>;

const names: Readonly<Record<MediaKind, string>> = { image: 'images', pdf: 'PDF files' };

/** Returns the non-text media in messages. */
export function mediaIn(messages: readonly ModelMessage[]): ReadonlySet<MediaKind> {
  const media = new Set<MediaKind>();
  for (const message of messages) {
    if (message.role !== 'user') continue;
    for (const part of message.parts ?? []) if (part.type !== 'text') media.add(part.type === 'image' ? 'image' : 'pdf');
  }
  return media;
}

/** Returns the models of a turn that support the media and the requested options; throws `invalid_params` when the first one does not. */
export function fittingModels(
  candidates: readonly ModelInfo[],
  wanted: { readonly media: ReadonlySet<MediaKind>; readonly mediaParam: string; readonly asked?: Asked | undefined },
  unsupported: Models['unsupported'],
): readonly ModelInfo[] {
  const { media, mediaParam, asked } = wanted;
  // Most turns use only text.
  if (media.size === 0 && asked === undefined) return candidates;
  const [primary] = candidates;
  if (primary === undefined) return candidates;
  const missing = (model: ModelInfo) => [...media].find((kind) => !model.input.includes(kind));
  const kind = missing(primary);
  if (kind !== undefined)
    throw new AppError('invalid_params', `The model ${primary.provider}/${primary.modelId} does not take ${names[kind]}`, { param: mediaParam });
  const refused = asked === undefined ? undefined : unsupported(primary, asked);
  if (refused !== undefined) throw new AppError('invalid_params', refused.message, { param: refused.option });
  return candidates.filter(
    (model) => model === primary || (missing(model) === undefined && (asked === undefined || unsupported(model, asked) === undefined)),
  );
}

type Media = Exclude<ModelPart, { type: 'text' }>;

const kindOf = (part: Media) => (part.type === 'image' ? 'image' : 'file');

/** Collects images and files of tool results, which are sent to the model in a separate message after the last result. */
export class ResultMedia {
  readonly #isUsable: (part: ModelPart) => boolean;
  #taken: Media[] = [];

  constructor(isUsable: (part: ModelPart) => boolean) {
    this.#isUsable = isUsable;
  }

  /** Returns the text of one result, with a note instead of each image or file. */
  take(parts: readonly ModelPart[]): string {
    return parts
      .map((part) => {
        if (part.type === 'text') return part.text;
        if (!this.#isUsable(part)) return leftOut(part, 'models do not support this form');
        this.#taken.push(part);
        return `[${kindOf(part)} ${this.#taken.length}: follows the results]`;
      })
      .join('\n');
  }

  /** Returns the message with the media collected since the last call. */
  release(): ModelMessage[] {
    if (this.#taken.length === 0) return [];
    const parts = this.#taken.flatMap((part, index): ModelPart[] => [
      { type: 'text', text: `[${kindOf(part)} ${index + 1} of the tool results above]` },
      part,
    ]);
    this.#taken = [];
    return [{ role: 'user', content: textsOf(parts), parts, ofResults: true }];
  }
}

/** Replaces unsupported media in tool results by a note. Unsupported media from users reject the request instead. */
export function showResults(messages: readonly ModelMessage[], model: ModelInfo): readonly ModelMessage[] {
  const sees = (part: ModelPart) => part.type === 'text' || model.input.includes(part.type === 'image' ? 'image' : 'pdf');
  return messages.map((message) => {
    if (message.role !== 'user' || message.ofResults !== true || message.parts?.every(sees) !== false) return message;
    const why = `the model ${model.provider}/${model.modelId} cannot see it`;
    const parts = message.parts.map((part): ModelPart => (part.type === 'text' || sees(part) ? part : { type: 'text', text: leftOut(part, why) }));
    const { parts: _unseen, ...rest } = message;
    const content = textsOf(parts);
    return parts.some((part) => part.type !== 'text') ? { ...rest, content, parts } : { ...rest, content };
  });
}

const leftOut = (part: Media, why: string) => `[${kindOf(part)} left out: ${why}]`;

const textsOf = (parts: readonly ModelPart[]) => parts.flatMap((part) => (part.type === 'text' ? [part.text] : [])).join('\n');
