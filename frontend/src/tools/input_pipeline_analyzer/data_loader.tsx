/** PyTorch's data loader: what to change and what it gains at most, and how it loads. */
import type { VNode } from 'preact';
import { readTable } from '../../api/declared';
import { INPUT_PIPELINE_ANALYZER } from '../../api/tables/input_pipeline_analyzer';
import type { Payload } from '../../api/types';
import { format } from '../../base/units';
import { RichText } from '../../widgets/rich_text';
import { Facts, Section } from '../../widgets/summary';
import { TableSection } from '../table_section';
import type { ToolProps } from '../tool';
import { loaderFacts } from './model';

const { tables: TABLES } = INPUT_PIPELINE_ANALYZER.page;

function Changes({ payload }: { payload: Payload }): VNode {
  const changes = readTable(payload, TABLES.loader_changes);
  return (
    <Section title={changes.table.title} tip={changes.table.description} note={changes.note}>
      <ol class="advice">
        {changes.all().map(({ host, change, why, gain_ps, gain_fraction }) => (
          <li key={`${host} ${change}`}>
            <b>
              up to {format(gain_ps, 'ps')} ({format(gain_fraction, 'fraction')})
              {payload.hosts.length > 1 && <small> on {host}</small>}
            </b>
            <p>
              <RichText text={`${change}. ${why}`} />
            </p>
          </li>
        ))}
      </ol>
    </Section>
  );
}

export function DataLoader({
  payload,
  params,
  setParams,
}: { payload: Payload } & Pick<ToolProps, 'params' | 'setParams'>): VNode | null {
  const loader = payload.tables[TABLES.loader.name];
  if (!loader) return null;
  const has = TABLES.loader_changes.name in payload.tables;
  return (
    <>
      {has && <Changes payload={payload} />}
      {loader.n_rows === 1 ? (
        <Section title={loader.title} note={loader.note}>
          <Facts facts={loaderFacts(loader)} />
        </Section>
      ) : (
        <TableSection name={TABLES.loader.name} table={loader} params={params} setParams={setParams} />
      )}
    </>
  );
}
