// A Streams application that counts the records of each key in a store with a changelog.
// Arguments: bootstrap servers, state directory, input topic. For each line of standard input, it
// waits until it runs, and prints the number of keys in the store and the sum of their counts.
import java.util.Properties;
import java.util.Scanner;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StoreQueryParameters;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.QueryableStoreTypes;
import org.apache.kafka.streams.state.ReadOnlyKeyValueStore;

public class ChurnCounts {
    public static void main(String[] arguments) throws Exception {
        Properties configs = new Properties();
        configs.put("application.id", "churn");
        configs.put("bootstrap.servers", arguments[0]);
        configs.put("state.dir", arguments[1]);
        configs.put("commit.interval.ms", "200");
        configs.put("replication.factor", "-1");
        configs.put("default.key.serde", Serdes.StringSerde.class.getName());
        configs.put("default.value.serde", Serdes.StringSerde.class.getName());
        configs.put(StreamsConfig.topicPrefix("segment.ms"), "1000");
        configs.put(StreamsConfig.topicPrefix("min.cleanable.dirty.ratio"), "0.01");
        configs.put(StreamsConfig.topicPrefix("file.delete.delay.ms"), "100");
        StreamsBuilder builder = new StreamsBuilder();
        builder.<String, String>stream(arguments[2]).groupByKey().count(
            Materialized.<String, Long, KeyValueStore<Bytes, byte[]>>as("counts").withCachingDisabled());
        KafkaStreams streams = new KafkaStreams(builder.build(), configs);
        streams.start();
        Scanner lines = new Scanner(System.in);
        while (lines.hasNextLine()) {
            lines.nextLine();
            while (streams.state() != KafkaStreams.State.RUNNING) {
                Thread.sleep(50);
            }
            ReadOnlyKeyValueStore<String, Long> store = streams.store(
                StoreQueryParameters.fromNameAndType("counts", QueryableStoreTypes.keyValueStore()));
            long keys = 0;
            long sum = 0;
            try (KeyValueIterator<String, Long> all = store.all()) {
                while (all.hasNext()) {
                    KeyValue<String, Long> each = all.next();
                    keys++;
                    sum += each.value;
                }
            }
            System.out.println(keys + " " + sum);
        }
        System.exit(0);
    }
}
