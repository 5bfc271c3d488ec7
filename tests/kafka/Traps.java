// Kafka's Java clients in situations that surprise users. Arguments: a bootstrap server, and one of
// `closing` or `transactional`.

import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

public class Traps {
    public static void main(String[] arguments) throws Exception {
        if (arguments[1].equals("closing")) {
            closing(arguments[0], "subscribed", false);
            closing(arguments[0], "assigned", true);
        } else {
            transactional(arguments[0]);
        }
    }

    // Consumers close after their topic was deleted. Print "NAME deleted" or "NAME is back".
    static void closing(String bootstrap, String topic, boolean assigned) throws Exception {
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", bootstrap))) {
            admin.createTopics(List.of(new NewTopic(topic, 1, (short) 3))).all().get();
            try (KafkaProducer<String, String> producer = producer(bootstrap, Map.of())) {
                producer.send(new ProducerRecord<>(topic, "key", "value")).get();
            }
            Properties settings = new Properties();
            settings.putAll(Map.of("bootstrap.servers", bootstrap, "group.id", "g-" + topic));
            settings.put("auto.offset.reset", "earliest");
            KafkaConsumer<String, String> consumer =
                new KafkaConsumer<>(settings, new StringDeserializer(), new StringDeserializer());
            if (assigned) {
                consumer.assign(List.of(new TopicPartition(topic, 0)));
            } else {
                consumer.subscribe(List.of(topic));
            }
            while (consumer.poll(Duration.ofMillis(100)).isEmpty()) { }
            admin.deleteTopics(List.of(topic)).all().get();
            while (admin.listTopics().names().get().contains(topic)) {
                Thread.sleep(50);
            }
            consumer.close(Duration.ofSeconds(3)); // it tries to commit its offsets until then
            Thread.sleep(1000);
            boolean back = admin.listTopics().names().get().contains(topic);
            System.out.println(topic + (back ? " is back" : " deleted"));
        }
    }

    // Print the error of initTransactions, and the seconds until it came.
    static void transactional(String bootstrap) {
        long begun = System.nanoTime();
        try (KafkaProducer<String, String> producer =
                producer(bootstrap, Map.of("transactional.id", "t"))) {
            producer.initTransactions();
            System.out.println("accepted");
        } catch (Exception error) {
            System.out.println(error.getMessage());
        }
        System.out.println((System.nanoTime() - begun) / 1_000_000_000);
    }

    static KafkaProducer<String, String> producer(String bootstrap, Map<String, String> more) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", bootstrap);
        settings.putAll(more);
        return new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer());
    }
}
