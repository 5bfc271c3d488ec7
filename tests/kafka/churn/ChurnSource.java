// A source connector whose offsets change with every poll. The config `partitions` is the number of
// source partitions, `topic` the topic of its records. The value of a record is its position.
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.connect.connector.Task;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.source.SourceConnector;
import org.apache.kafka.connect.source.SourceRecord;
import org.apache.kafka.connect.source.SourceTask;

public class ChurnSource extends SourceConnector {
    private Map<String, String> configs;

    @Override public void start(Map<String, String> configs) { this.configs = configs; }
    @Override public void stop() { }
    @Override public String version() { return "1"; }
    @Override public ConfigDef config() { return new ConfigDef(); }
    @Override public Class<? extends Task> taskClass() { return ChurnTask.class; }
    @Override public List<Map<String, String>> taskConfigs(int most) { return List.of(configs); }

    public static class ChurnTask extends SourceTask {
        private static final String PADDING = "x".repeat(200);
        private final List<Map<String, String>> places = new ArrayList<>();
        private String topic;
        private long at;

        @Override public String version() { return "1"; }

        @Override public void start(Map<String, String> configs) {
            topic = configs.get("topic");
            for (int each = 0; each < Integer.parseInt(configs.get("partitions")); each++) {
                places.add(Map.of("place", "place-" + each));
            }
            for (Map<String, Object> offset : context.offsetStorageReader().offsets(places).values()) {
                if (offset != null) {
                    at = Math.max(at, ((Number) offset.get("at")).longValue());
                }
            }
        }

        @Override public List<SourceRecord> poll() throws InterruptedException {
            Thread.sleep(100);
            at++;
            List<SourceRecord> records = new ArrayList<>();
            for (Map<String, String> place : places) {
                Map<String, ?> offset = Map.of("at", at, "padding", PADDING);
                records.add(new SourceRecord(place, offset, topic, Schema.INT64_SCHEMA, at));
            }
            return records;
        }

        @Override public void stop() { }
    }
}
