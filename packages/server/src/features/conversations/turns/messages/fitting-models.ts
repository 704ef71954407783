import { AppError } from '../../../../kernel/app-error.ts';
import type { ModelInfo, ModelMessage } from '../../../../llm/model.ts';
import type { Models } from '../../../../llm/models.ts';
import type { Asked } from '../../../../llm/unsupported.ts';

type Medium = Exclude<ModelInfo['input'][number], 'text'>;

const words: Readonly<Record<Medium, string>> = { image: 'images', pdf: 'PDF files' };

/** What messages hold beside text. */
export function mediaIn(messages: readonly ModelMessage[]): ReadonlySet<Medium> {
  const media = new Set<Medium>();
  for (const message of messages) {
    if (message.role !== 'user') continue;
    for (const part of message.parts ?? []) if (part.type !== 'text') media.add(part.type === 'image' ? 'image' : 'pdf');
  }
  return media;
}

/** Those of a turn's models that take the media and honour what is asked for; when the first one does not, the caller is told by `invalid_params`. */
export function fittingModels(
  candidates: readonly ModelInfo[],
  wanted: { readonly media: ReadonlySet<Medium>; readonly mediaParam: string; readonly asked?: Asked | undefined },
  unsupported: Models['unsupported'],
): readonly ModelInfo[] {
  const { media, mediaParam, asked } = wanted;
  const [primary] = candidates;
  if (primary === undefined) return candidates;
  const missing = (model: ModelInfo) => [...media].find((medium) => !model.input.includes(medium));
  const medium = missing(primary);
  if (medium !== undefined)
    throw new AppError('invalid_params', `The model ${primary.provider}/${primary.modelId} does not take ${words[medium]}`, { param: mediaParam });
  const refused = asked === undefined ? undefined : unsupported(primary, asked);
  if (refused !== undefined) throw new AppError('invalid_params', refused.message, { param: refused.option });
  return candidates.filter(
    (model) => model === primary || (missing(model) === undefined && (asked === undefined || unsupported(model, asked) === undefined)),
  );
}
