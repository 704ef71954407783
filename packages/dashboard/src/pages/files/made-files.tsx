import { t, tx } from '../../language.ts';
import type { Client } from '@gatehouse/client';
import { makesFiles, pathsOf } from '../../data/made-files.ts';
import { useSession } from '../../data/context.ts';
import { useLoad } from '../../data/use-load.ts';
import { FileView } from './file-view.tsx';

/** Messages of a turn that are searched for its files. */
const searched = 100;

/** Files that tools made in a turn, such as generated images and speech. */
export function MadeFiles({ agentId, paths }: { readonly agentId: string; readonly paths: readonly string[] }) {
  return (
    <ul className="attachments" aria-label={t('Files made by the agent')}>
      {paths.map((path) => (
        <li key={path}>
          <MadeFile agentId={agentId} path={path} />
        </li>
      ))}
    </ul>
  );
}

/** The same for an answer that was written in this tab, whose tool results only the server has. */
export function MadeFilesOfTurn({ agentId, reference, turnId }: { readonly agentId: string; readonly reference: string; readonly turnId: string }) {
  const { client } = useSession();
  const { data } = useLoad(['session.history', 'made', reference, turnId], (signal) => findPaths(client, reference, turnId, signal));
  return data === undefined || data.length === 0 ? null : <MadeFiles agentId={agentId} paths={data} />;
}

async function findPaths(client: Client, conversationRef: string, turnId: string, signal: AbortSignal): Promise<readonly string[]> {
  const { total } = await client.call('session.history', { conversationRef, limit: 1 }, { signal });
  const offset = Math.max(0, total - searched);
  const { messages } = await client.call('session.history', { conversationRef, offset, limit: searched }, { signal });
  return messages.flatMap((row) => (row.turnId === turnId && makesFiles(row.toolName) ? pathsOf(row.content) : []));
}

function MadeFile({ agentId, path }: { readonly agentId: string; readonly path: string }) {
  const { client } = useSession();
  const { data, error } = useLoad(['workspace.readBytes', agentId, path], (signal) =>
    client.call('workspace.readBytes', { agentId, filePath: path }, { signal }),
  );
  if (error !== undefined) return <span className="hint">{tx('Failed to load {path}.', { path })}</span>;
  if (data === undefined) return null;
  const { base64, contentType, sizeBytes } = data;
  const name = path.slice(path.lastIndexOf('/') + 1);
  const load = async (): Promise<Blob> => new Blob([Uint8Array.fromBase64(base64)], { type: contentType });
  return <FileView file={{ key: `${agentId} ${path} ${sizeBytes}`, name, contentType, size: sizeBytes, load }} />;
}
