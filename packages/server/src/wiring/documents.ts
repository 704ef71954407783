import { createDocuments } from '../features/environment/documents/documents.ts';
import type { MediaLibrary } from '../features/environment/media/api.ts';
import { isInternal } from '../features/environment/workspace/taint/internal-names.ts';
import { createEgress } from '../kernel/egress.ts';
import type { Assembly } from './assembly.ts';
import type { Tooling } from './tooling.ts';

export interface DocumentsWiring {
  readonly media: MediaLibrary;
  readonly workspace: Pick<Tooling['workspace'], 'taints'>;
}

/** Wires the text of documents. */
export function wireDocuments({ options, live, clock }: Assembly, { media, workspace }: DocumentsWiring) {
  return createDocuments({
    clock,
    config: live(({ documents }) => documents),
    media,
    egress: createEgress({ clock, ...options.overrides?.egress, allowHosts: [] }),
    taints: workspace.taints,
    isInternal,
  });
}
