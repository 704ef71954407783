import { t } from '../../language.ts';
import { useState } from 'react';
import { useSession } from '../../data/context.ts';
import { useLoad } from '../../data/use-load.ts';
import { PageLink } from '../../ui/link.tsx';
import { Failure, Page, Skeleton } from '../../ui/parts.tsx';
import { draftOf, emptyGraph, type GraphDraft } from './draft.ts';
import { Editor } from './editor.tsx';

/** The editor of a new graph, or of the one saved under `id`. */
export function EditorPage({ id }: { readonly id: string | undefined }) {
  const { client } = useSession();
  const { data, error, reload } = useLoad(['graph.load', 'draft', id], async (signal): Promise<GraphDraft> =>
    id === undefined ? emptyGraph : draftOf(await client.call('graph.load', { id }, { signal })),
  );
  // A reload must not replace a graph that is being edited.
  const [opened, setOpened] = useState<GraphDraft>();
  if (opened === undefined && data !== undefined) setOpened(data);
  if (opened !== undefined) return <Editor id={id} opened={opened} />;
  return (
    <Page title={t('Graph')} lead={<PageLink to="/graphs">{t('All graphs')}</PageLink>}>
      {error === undefined ? <Skeleton lines={6} /> : <Failure error={error} onRetry={reload} />}
    </Page>
  );
}
